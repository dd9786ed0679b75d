package ingest

import (
	"encoding/hex"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/passing"
)

// ruleOf returns which headers of a source's requests are kept.
func ruleOf(s *Source) *passing.Rule {
	if s.Headers != nil {
		return s.Headers
	}
	return passing.New(passing.Source{Secret: confided(s.Provider)})
}

// confided returns the headers in which the provider sends the secret itself.
func confided(p hookonce.Provider) []string {
	if c, ok := p.(hookonce.Confider); ok {
		return c.Confided()
	}
	return nil
}

// facts returns the header lines of an event, which come after those of its request: what an application that
// did not see the request's signature wants to know of it, and the journal has no use for. Nobody else's
// lines have these names (see package passing).
func facts(ev *hookonce.Event) []byte {
	f := make(outgoing.Facts, 0, 256)
	f.Add(outgoing.ProviderHeader, ev.Provider)
	if ev.Key != "" {
		f.Add(outgoing.KeySignedHeader, strconv.FormatBool(ev.KeySigned))
	}
	if !ev.Rank.IsZero() {
		f.Add(outgoing.RankHeader, string(ev.Rank.Kind)+":"+strconv.FormatInt(ev.Rank.N, 10))
	}
	f.AddTime(outgoing.TimeHeader, ev.Time)
	f.Add(outgoing.ResourceHeader, ev.Resource)
	f.Add(outgoing.TenantHeader, ev.Tenant)
	f.Add(outgoing.SenderAttemptIDHeader, ev.AttemptID)
	f.Add(outgoing.LogicalHeader, ev.Logical)
	f.Add(outgoing.DigestHeader, hex.EncodeToString(ev.Digest))
	return f
}
