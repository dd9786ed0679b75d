package ingest

import (
	"encoding/hex"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
)

// ruleOf returns which headers of a source's requests are kept.
func ruleOf(s *Source) *header.Rule {
	if s.Headers != nil {
		return s.Headers
	}
	return header.NewRule(header.Spec{Secret: s.Provider.Profile().SecretHeaders})
}

// facts returns the header lines of an event, which come after those of its request: what an application that
// did not see the request's signature wants to know of it, and the journal has no use for. Nobody else's
// lines have these names (see package passing).
func facts(ev *hookonce.Event) []byte {
	f := make(header.Facts, 0, 256)
	f.Add(header.HookonceProvider, ev.Provider)
	if ev.Key != "" {
		f.Add(header.HookonceKeySigned, strconv.FormatBool(ev.KeySigned))
	}
	if !ev.Rank.IsZero() {
		f.Add(header.HookonceRank, string(ev.Rank.Kind)+":"+strconv.FormatInt(ev.Rank.N, 10))
	}
	f.AddTime(header.HookonceTime, ev.Time)
	f.Add(header.HookonceResource, ev.Resource)
	f.Add(header.HookonceTenant, ev.Tenant)
	f.Add(header.HookonceSenderAttemptID, ev.AttemptID)
	f.Add(header.HookonceLogical, ev.Logical)
	f.Add(header.HookonceDigest, hex.EncodeToString(ev.Digest))
	return f
}
