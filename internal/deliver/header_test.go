package deliver

import (
	"bufio"
	"io"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/passing"
)

func TestDecodeHeader(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		want        http.Header
	}{
		{"nothing", "", http.Header{}},
		{"as stored", "Content-Type: application/json\r\nX-A: 1\r\nX-A: 2\r\nX-B: \r\n",
			http.Header{"Content-Type": {"application/json"}, "X-A": {"1", "2"}, "X-B": {""}}},
		{"three values", "X-A: 1\r\nX-B: 4\r\nX-A: 2\r\nX-A: 3\r\nX-B: 5\r\n",
			http.Header{"X-A": {"1", "2", "3"}, "X-B": {"4", "5"}}},
		{"other spelling", "x-a:1\r\n", http.Header{"X-A": {"1"}}},
		{"bytes above ASCII", "X-A: caf\xe9\r\n", http.Header{"X-A": {"caf\xe9"}}},
		{"last line without an end", "X-A: 1\r\nX-B: 2", http.Header{"X-A": {"1"}, "X-B": {"2"}}},
		{"of one hop", "Connection: x\r\nHost: evil\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nTE: x\r\n" +
			"Upgrade: h2c\r\nKeep-Alive: 1\r\nProxy-Authorization: x\r\nTrailer: x\r\nExpect: 100-continue\r\nX-A: 1\r\n",
			http.Header{"X-A": {"1"}}},
		{"not field lines", "no colon\r\n: no name\r\na b: c\r\nX-Nul: \x00\r\nX-LF: a\nb\r\nX-A: 1\r\n",
			http.Header{"X-A": {"1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := decodeHeader([]byte(c.lines), &passing.Filter{}); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The facts that are kept with an event are delivered and signed whatever a destination passes or drops of the
// provider's headers. Whatever else begins like ours is not.
func TestFactsAreDelivered(t *testing.T) {
	for name, settings := range map[string]Destination{
		"all": {}, "few": {PassHeader: []string{"X-Signature"}}, "without": {DropHeader: []string{"Hookonce-Rank", "Hookonce-Tenant"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &destination{name: "app", secrets: [][]byte{[]byte("fake")}}
			if err := d.headers(settings); err != nil {
				t.Fatal(err)
			}
			w := work("billing", "evt_1", 7)
			w.Resource = "cus 1"
			w.Header = []byte("Hookonce-Rank: version:7\r\nHookonce-Tenant: acct_1\r\nHookonce-Forced: true\r\nHookonce-Else: 1\r\n")
			h := headerOf(d, w, time.Unix(1700000000, 0))
			for name, want := range map[string]string{"Hookonce-Rank": "version:7", "Hookonce-Tenant": "acct_1", "Hookonce-Scope": "cus%201", "Hookonce-Forced": "", "Hookonce-Else": ""} {
				if got := h.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if outgoing.VerifyFacts(d.secrets, h.Get(outgoing.MessageIDHeader), "1700000000", h, h.Get(outgoing.FactsSignatureHeader)) != 1 {
				t.Error("they are not signed")
			}
		})
	}
}

// FuzzDecodeHeader: whatever is stored, the result can be sent and reads back the same.
func FuzzDecodeHeader(f *testing.F) {
	f.Add([]byte("Content-Type: application/json\r\nX-A: 1\r\nX-A: 2\r\n"))
	f.Add([]byte("Host: x\r\ncontent-length: 5\r\n"))
	f.Add([]byte("X-A: \t1 \r\n\r\nX-B:2"))
	f.Add([]byte("X-A: a\rb\r\nX-B\x00: 1\r\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		h := decodeHeader(lines, &passing.Filter{})
		var b strings.Builder
		if err := h.Write(&b); err != nil {
			t.Fatal(err)
		}
		r := textproto.NewReader(bufio.NewReader(io.MultiReader(strings.NewReader(b.String()), strings.NewReader("\r\n"))))
		back, err := r.ReadMIMEHeader()
		if err != nil {
			t.Fatalf("%q decodes to %q, which cannot be sent: %v", lines, h, err)
		}
		if len(h) > 0 && !reflect.DeepEqual(http.Header(back), h) {
			t.Fatalf("%q decodes to %q and arrives as %q", lines, h, back)
		}
		for name := range h {
			if passing.OfConnection(name) {
				t.Fatalf("%q is forwarded", name)
			}
		}
	})
}

// FuzzHeader: whatever was stored with an event, and whatever its texts are, the headers can be sent, and
// those that are ours to set say what we know and nothing else.
func FuzzHeader(f *testing.F) {
	f.Add([]byte("Content-Type: a\r\nHookonce-Key: forged\r\nwebhook-id: theirs\r\ntraceparent: x\r\n"), "billing", "evt_1", "type", "twin", true)
	f.Add([]byte("Idempotency-Key: forged\r\nIdempotency-Key: twice\r\n"), "a b", "", "\r\n", "\x00", false)
	f.Fuzz(func(t *testing.T, stored []byte, source, key, kind, twin string, signed bool) {
		w := work(source, key, 7)
		w.Header, w.Type, w.Twin = stored, kind, twin
		d := &destination{name: "app", header: http.Header{"X-Team": {"payments"}}}
		if signed {
			d.secrets = [][]byte{[]byte("fake")}
		}
		h := headerOf(d, w, time.Unix(1700000000, 0))
		for name, values := range h {
			if !passing.Token(name) || passing.OfConnection(name) {
				t.Fatalf("%q cannot be sent", name)
			}
			for _, v := range values {
				if !isFieldValue(v) {
					t.Fatalf("%s: %q cannot be sent", name, v)
				}
			}
			if ours := strings.HasPrefix(name, outgoing.OwnPrefix) || reserved(name) && (signed || !strings.HasPrefix(name, "Webhook-")); ours && len(values) != 1 && name != tracestate {
				t.Fatalf("%s: %q", name, values)
			}
		}
		if h.Get("Hookonce-Key") != outgoing.HeaderSafe(key) || h.Get("Idempotency-Key") != idempotencyKey(w) || h.Get("X-Team") != "payments" {
			t.Fatalf("%q, with the event %q", h, key)
		}
		if id := h.Get(outgoing.MessageIDHeader); signed && id != messageID(idempotencyKey(w), "app") {
			t.Fatalf("signed as %q", id)
		}
	})
}
