package redisstore

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// Whatever a key holds that somebody else wrote, reading it is an error at worst.
func FuzzReply(f *testing.F) {
	f.Add("processing|1|1767323045678901|paid|digest|1767323045678901|1767323045678901|declined")
	f.Add("done|x||||||")
	f.Add("|||||||")
	f.Add("stale|done|2")
	f.Add("missing")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var r reply
		for field := range strings.SplitSeq(text, "|") {
			r = append(r, field)
		}
		ref := hookonce.Ref{Source: "billing", Key: "evt_1"}
		if c, err := r.claim(ref, 0); err == nil && (c.Ref != ref || string(c.State) != r.text(0)) {
			t.Errorf("%q is read as %#v", text, c)
		}
		if len(r) >= 3 {
			_, _ = r.response()
		}
		if err := r.refusal(1); err == nil && r.text(0) != "ok" {
			t.Errorf("%q is taken for a success", text)
		}
	})
}
