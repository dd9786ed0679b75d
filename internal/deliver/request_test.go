package deliver

import (
	"bufio"
	"io"
	"net/http"
	"net/textproto"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
)

func work(source, key string, id int64) *journal.Work {
	return &journal.Work{Held: journal.Held{EventID: id, Destination: "app", Token: 1}, Source: source, Key: key, Tries: 1}
}

func TestIdempotencyKey(t *testing.T) {
	for _, c := range []struct {
		name string
		work *journal.Work
		want string
	}{
		{"plain", work("billing", "evt_1", 7), "billing:evt_1"},
		{"unkeyed", work("billing", "", 7), "billing#7"},
		{"taken over by the next", work("billing", journal.CoalesceKey("account"), 7), "billing#7"},
		{"joined parts", work("billing", hookonce.JoinKey("ab", "c"), 7), "billing:2:ab1:c"},
		{"not ASCII", work("billing", "é", 7), "billing:%C3%A9"},
		{"space and percent", work("billing", "a b%", 7), "billing:a%20b%25"},
		{"a source with the separators", work("a:b#c", "d", 7), "a%3Ab%23c:d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := idempotencyKey(c.work); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzIdempotencyKey: two events have the same key only when they are the same event, and every key
// can be sent.
func FuzzIdempotencyKey(f *testing.F) {
	f.Add("a", "b", int64(1), "a", "b", int64(2))
	f.Add("a", "", int64(1), "a", "1", int64(1))
	f.Add("a:b", "c", int64(1), "a", "b:c", int64(1))
	f.Add("a", journal.CoalesceKey("b"), int64(1), "a", journal.CoalesceKey("b"), int64(2))
	f.Add("a", journal.CoalesceKey("b"), int64(1), "a", "", int64(1)) // its key was taken over
	f.Add("a#1", "", int64(1), "a", "", int64(11))
	f.Add("a", "#1", int64(1), "a", "", int64(1))
	f.Add("a%", "b", int64(1), "a", "%25b", int64(1))
	f.Add("a", strings.Repeat("é", 120), int64(1), "a", strings.Repeat("é", 120)+"x", int64(1))
	f.Fuzz(func(t *testing.T, source1, key1 string, id1 int64, source2, key2 string, id2 int64) {
		for _, r := range []hookonce.Ref{{Source: source1, Key: key1}, {Source: source2, Key: key2}} {
			if r.Validate() != nil {
				return // no store would have it
			}
		}
		a, b := idempotencyKey(work(source1, key1, id1)), idempotencyKey(work(source2, key2, id2))
		shared := key1 != "" && !journal.Coalesces(key1) // otherwise the id counts, and the key does not
		alike := key1 == key2 || !shared && (key2 == "" || journal.Coalesces(key2))
		same := source1 == source2 && alike && (shared || id1 == id2)
		if same != (a == b) {
			t.Fatalf("%q and %q for (%q, %q, %d) and (%q, %q, %d)", a, b, source1, key1, id1, source2, key2, id2)
		}
		if a == "" || len(a) > maxIdempotencyKey || strings.IndexFunc(a, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
			t.Fatalf("key %q cannot be sent", a)
		}
	})
}

const exampleTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" // of the W3C's recommendation

func TestValidTrace(t *testing.T) {
	for _, c := range []struct {
		name, value string
		valid       bool
	}{
		{"the standard's", exampleTrace, true},
		{"not sampled", exampleTrace[:53] + "00", true},
		{"a later version", "cc" + exampleTrace[2:], true},
		{"a later version that says more", "cc" + exampleTrace[2:] + "-what-the-future-says", true},
		{"a later version with a longer flag", "cc" + exampleTrace[2:] + "0", false},
		{"version 00 says no more", exampleTrace + "-more", false},
		{"forbidden version", "ff" + exampleTrace[2:], false},
		{"upper case", strings.ToUpper(exampleTrace), false},
		{"no trace", "00-" + strings.Repeat("0", 32) + exampleTrace[35:], false},
		{"no parent", exampleTrace[:36] + strings.Repeat("0", 16) + "-01", false},
		{"short", exampleTrace[:54], false},
		{"not hexadecimal", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", false},
		{"other separators", strings.ReplaceAll(exampleTrace, "-", "_"), false},
		{"empty", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := validTrace(c.value); got != c.valid {
				t.Errorf("validTrace(%q) = %t", c.value, got)
			}
		})
	}
}

// FuzzTrace: whatever the sender sent, the destination gets one valid trace context: the sender's own or
// one of ours, without the state of the sender's.
func FuzzTrace(f *testing.F) {
	f.Add(exampleTrace, "vendor=1", "billing:evt_1")
	f.Add("", "vendor=1", "billing:evt_1")
	f.Add("00-x", "", "a#1")
	form := regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$`)
	f.Fuzz(func(t *testing.T, sent, state, key string) {
		h := http.Header{traceparent: {sent}, tracestate: {state}}
		setTrace(h, key)
		got := h[traceparent]
		if len(got) != 1 || !form.MatchString(got[0]) && got[0] != sent || !validTrace(got[0]) {
			t.Fatalf("%q became %q", sent, got)
		}
		if kept := h[tracestate] != nil; kept != (got[0] == sent) {
			t.Fatalf("%q became %q, state kept: %t", sent, got, kept)
		}
		other := http.Header{}
		setTrace(other, key)
		if got[0] != sent && other[traceparent][0][:36] != got[0][:36] {
			t.Fatalf("two traces for one event: %q and %q", got, other)
		}
	})
}

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
			if got := new(header.Filter).Decode([]byte(c.lines), ownHeaders); !reflect.DeepEqual(got, c.want) {
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
			if outgoing.VerifyFacts(d.secrets, h.Get(header.WebhookID), "1700000000", h, h.Get(header.HookonceSignature)) != 1 {
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
		h := new(header.Filter).Decode(lines, ownHeaders)
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
			if header.HopByHop(name) {
				t.Fatalf("%q is forwarded", name)
			}
		}
	})
}

// FuzzHeader: whatever was stored with an event, and whatever its texts are, the headers can be sent, and
// those that are ours to set say what we know and nothing else.
func FuzzHeader(f *testing.F) {
	f.Add([]byte("Content-Type: a\r\nHookonce-Key: forged\r\nwebhook-id: theirs\r\ntraceparent: x\r\n"), "billing", "evt_1", "type", "logical duplicate", true)
	f.Add([]byte("Idempotency-Key: forged\r\nIdempotency-Key: twice\r\n"), "a b", "", "\r\n", "\x00", false)
	f.Fuzz(func(t *testing.T, stored []byte, source, key, kind, first string, signed bool) {
		w := work(source, key, 7)
		w.Header, w.Type, w.LogicalDuplicateKey = stored, kind, first
		d := &destination{name: "app", header: http.Header{"X-Team": {"payments"}}}
		if signed {
			d.secrets = [][]byte{[]byte("fake")}
		}
		h := headerOf(d, w, time.Unix(1700000000, 0))
		for name, values := range h {
			if !header.ValidName(name) || header.HopByHop(name) {
				t.Fatalf("%q cannot be sent", name)
			}
			for _, v := range values {
				if !header.ValidValue(v) {
					t.Fatalf("%s: %q cannot be sent", name, v)
				}
			}
			if ours := strings.HasPrefix(name, header.OwnPrefix) || header.CheckSet(name) != nil && (signed || !strings.HasPrefix(name, "Webhook-")); ours && len(values) != 1 && name != tracestate {
				t.Fatalf("%s: %q", name, values)
			}
		}
		if h.Get("Hookonce-Key") != header.Safe(key) || h.Get("Idempotency-Key") != idempotencyKey(w) || h.Get("X-Team") != "payments" {
			t.Fatalf("%q, with the event %q", h, key)
		}
		if id := h.Get(header.WebhookID); signed && id != messageID(idempotencyKey(w), "app") {
			t.Fatalf("signed as %q", id)
		}
	})
}
