package deliver

import (
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Signer signs an event the way its provider does. It is safe for concurrent use.
type Signer interface {
	// Sign replaces what the provider's signature is in, at req.Now: headers, and where they have a part of it the
	// URL and the body, of which it makes new ones. Vouched is that of [journal.Work]: where it is zero nothing is
	// signed. With an error the request stays as it was.
	Sign(req *hookonce.Request, vouched int16) error
	// Carries reports whether a header of that canonical name has a part of the signature, or is signed.
	Carries(name string) bool
}

// resign has the provider's signature made anew where the destination wants that. What cannot be signed is delivered
// as the provider sent it.
func (d *Deliverer) resign(dest *destination, w *journal.Work, req *hookonce.Request) {
	s := dest.signers[w.Source]
	if s == nil {
		return
	}
	if err := s.Sign(req, w.Vouched); err != nil {
		d.opt.Logger.Warn("deliver: the provider's signature could not be made anew; the event is delivered with the one it came with",
			"source", w.Source, "key", w.Key, "event", w.EventID, "destination", w.Destination, "error", err)
	}
}
