package ingest

import (
	"encoding/hex"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// facts returns the header lines of an event, which come after those of its request: what an application that
// did not see the request's signature wants to know of it, and the journal has no use for. Nobody else's
// lines have these names (see kept).
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
	f.Add(outgoing.DeliveryHeader, ev.Delivery)
	f.Add(outgoing.LogicalHeader, ev.Logical)
	f.Add(outgoing.DigestHeader, hex.EncodeToString(ev.Digest))
	return f
}
