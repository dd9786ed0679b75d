package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// plain is a sender that signs the body and has an id in it.
func plain() Spec {
	return Spec{
		Name:   "plain",
		Verify: []Verify{{Signature: Signature{In: "header:X-Signature"}, Sign: []Value{"body"}}},
		Event:  Extract{Key: [][]Value{{"json:$.id"}}},
	}
}

// batch is a sender that signs batches as a whole.
func batch(items ...Value) Spec {
	s := plain()
	s.Split, s.Event.Key = &Split{Items: items}, [][]Value{{"item:$.id"}}
	return s
}

func build1(t testing.TB, s Spec, settings Settings) *Provider {
	t.Helper()
	if settings.Secrets == nil {
		settings.Secrets = Secrets("fake")
	}
	p, err := New(s, settings)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request returns a request with that body, signed by p.
func request(t testing.TB, p *Provider, body string) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// open returns the delivery of a signed body.
func open(t testing.TB, p *Provider, body string) *hookonce.Verified {
	t.Helper()
	d, err := p.Open(request(t, p, body))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rejected checks that the request is rejected for that reason.
func rejected(t testing.TB, p *Provider, req *hookonce.Request, reason string) {
	t.Helper()
	d, err := p.Open(req)
	var rej *hookonce.RejectError
	if d != nil || !errors.As(err, &rej) || rej.Reason != reason {
		t.Errorf("got %v, %v; want %s", d, err, reason)
	}
}

// TestTheRegisteredURLHoldsNoToken: a token in the URL is what the sender has to send, not what was
// registered.
func TestTheRegisteredURLHoldsNoToken(t *testing.T) {
	s := plain()
	s.Verify = []Verify{{Kind: Token, Signature: Signature{In: "query:token"}}}
	p := build1(t, s, Settings{URL: "https://shop.example/in?token=fake"})
	req := &hookonce.Request{URL: "https://shop.example/in", Body: []byte(`{"id":"1"}`), Now: now}
	rejected(t, p, req, hookonce.ReasonSignatureMissing)
	req.URL += "?token=fake"
	if _, err := p.Open(req); err != nil {
		t.Error(err)
	}
}

// TestAnEmptyBatchOfSignedItemsIsNotSigned: nothing in it proves who sent it.
func TestAnEmptyBatchOfSignedItemsIsNotSigned(t *testing.T) {
	s := batch("json:$.items[*]")
	s.Verify = []Verify{{Signature: Signature{In: "item:$.sig"}, Sign: []Value{"item:$.id"}, Covers: CoversFields, PerItem: true}}
	p := build1(t, s, Settings{})
	rejected(t, p, &hookonce.Request{Body: []byte(`{"items":[]}`), Now: now}, hookonce.ReasonSignatureMissing)
	req := request(t, p, `{"items":[{"id":"1"}]}`)
	if d, err := p.Open(req); err != nil || d.Events[0].Key != "1" || !d.Events[0].KeySigned {
		t.Error(d, err)
	}
	forged := strings.Replace(string(req.Body), "]", `,{"id":"2","sig":"`+strings.Repeat("0", 64)+`"}]`, 1)
	rejected(t, p, &hookonce.Request{Body: []byte(forged), Now: now}, hookonce.ReasonSignatureMismatch)
	if d := open(t, build1(t, batch("json:$.items[*]"), Settings{}), `{"items":[]}`); len(d.Events) != 0 || d.Unreadable != nil {
		t.Error("an empty batch that is signed as a whole is not acknowledged")
	}
}

// TestSecretsOfAnotherFormAreNeverValid: not even for a request that arrives before 1970.
func TestSecretsOfAnotherFormAreNeverValid(t *testing.T) {
	s := plain()
	s.Verify[0].Key = KeyWhsec
	other := s.Verify[0]
	other.Kind, other.Key = Ed25519, KeyWhpk
	s.Verify = append(s.Verify, other)
	p := build1(t, s, Settings{Secrets: Secrets("whpk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "whsec_AAAA")})
	req := request(t, p, "{}")
	if d, err := p.Open(req); err != nil || d.Proof.Secret != 2 {
		t.Error(d, err)
	}
	rejected(t, p, &hookonce.Request{Header: http.Header{"X-Signature": {strings.Repeat("0", 64)}}}, hookonce.ReasonSignatureMismatch)
}

func TestSecretsHaveTheirTime(t *testing.T) {
	secrets := []Secret{{Text: "old", Until: now}, {Text: "new", From: now, Until: now.Add(time.Hour)}}
	p := build1(t, plain(), Settings{Secrets: secrets})
	for _, c := range []struct {
		secret string
		late   time.Duration
		number int
	}{{"old", -1, 1}, {"old", 0, 0}, {"new", -1, 0}, {"new", 0, 2}, {"new", time.Hour - 1, 2}} {
		req := request(t, build1(t, plain(), Settings{Secrets: Secrets(c.secret)}), "{}")
		req.Now = now.Add(c.late)
		if c.number == 0 {
			rejected(t, p, req, hookonce.ReasonSignatureMismatch)
		} else if d, err := p.Open(req); err != nil || d.Proof.Secret != c.number {
			t.Errorf("%+v: %v, %v", c, d, err)
		}
	}
	late := request(t, build1(t, plain(), Settings{Secrets: Secrets("new")}), "{}")
	late.Now = now.Add(time.Hour)
	if _, err := p.Open(late); !errors.Is(err, hookonce.ErrNoSecret) || errors.Is(err, hookonce.ErrUnverified) {
		t.Error("that no secret is valid is our fault, not the sender's:", err)
	}
}

// TestAmbiguousOptionalPartsAreNotAbsent: the shorter key could be that of another event.
func TestAmbiguousOptionalPartsAreNotAbsent(t *testing.T) {
	s := plain()
	s.Event.Key = [][]Value{{"json:$.id", "json:$.name?"}}
	p := build1(t, s, Settings{})
	for body, keyed := range map[string]bool{
		`{"id":"1"}`: true, `{"id":"1","name":null}`: true, `{"id":"1","name":""}`: true, `{"id":"1","name":"a"}`: true,
		`{"id":"1","name":"a","name":"b"}`: false, `{"id":"1","name":{"a":1}}`: false, `{"id":"1","name":"\ud800"}`: false,
	} {
		if key := open(t, p, body).Events[0].Key; (key != "") != keyed {
			t.Errorf("%s: key %q", body, key)
		}
	}
}

// TestTheHashOfNothingIsNoKey: it would be the same for all events.
func TestTheHashOfNothingIsNoKey(t *testing.T) {
	s := plain()
	s.Event.Key = [][]Value{{"hash:json:$.data"}}
	p := build1(t, s, Settings{})
	for _, body := range []string{`{}`, `{"data":null}`, `{"data":""}`, `{"data":{ }}`, `{"data":[ ]}`, `{"data":1,"data":2}`} {
		if key := open(t, p, body).Events[0].Key; key != "" {
			t.Errorf("%s: key %q", body, key)
		}
	}
	a, b := open(t, p, `{"data":{"a":1}}`).Events[0].Key, open(t, p, `{"data":{"a":2}}`).Events[0].Key
	if a == "" || a == b {
		t.Errorf("keys %q and %q", a, b)
	}
}

// TestItemsAreAlone: what a handler reads in an item's document is that item and no other.
func TestItemsAreAlone(t *testing.T) {
	for _, c := range []struct {
		paths []Value
		body  string
		want  []string
	}{
		{[]Value{"json:$[*]"}, ` [{"id":"1"}, {"id":"2"}] `, []string{`[{"id":"1"}]`, `[{"id":"2"}]`}},
		{[]Value{"json:$.e[*]"}, `{"a":1,"e":[ 1,2 ],"z":2}`, []string{`{"a":1,"e":[1],"z":2}`, `{"a":1,"e":[2],"z":2}`}},
		{[]Value{"json:$.e[*]"}, `{"e":[]}`, nil},
		{[]Value{"json:$.e[*]"}, `{"id":"1"}`, []string{`{"id":"1"}`}},
		{[]Value{"json:$.a[*]", "json:$.b[*]"}, `{"a":[1],"b":[2]}`, []string{`{"a":[1],"b":[]}`, `{"a":[],"b":[2]}`}},
		{
			[]Value{"json:$.e[*].c[*]"}, `{"e":[{"x":1,"c":[1,2]},{"c":[]},{"m":3}],"z":0}`,
			[]string{`{"e":[{"x":1,"c":[1]}],"z":0}`, `{"e":[{"x":1,"c":[2]}],"z":0}`, `{"e":[{"m":3}],"z":0}`},
		},
	} {
		d := open(t, build1(t, batch(c.paths...), Settings{}), c.body)
		var got []string
		for _, ev := range d.Events {
			got = append(got, string(ev.Body))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || d.Unreadable != nil {
			t.Errorf("%s: %s, %v; want %s", c.body, got, d.Unreadable, c.want)
		}
	}
	d := open(t, build1(t, batch("json:$.e[*]"), Settings{}), `{"e":[{"id":"1"}],"e":[{"id":"2"}]}`)
	if d.Unreadable == nil || len(d.Events) != 1 || d.Events[0].Key != "" {
		t.Error("of two arrays of one name, one was believed")
	}
}

// TestHostileBatches: what costs more than the body is long is refused, and passes through whole.
func TestHostileBatches(t *testing.T) {
	envelope := strings.Repeat("x", 1<<18)
	p := build1(t, batch("json:$.e[*].c[*]"), Settings{})
	inner := `{"x":"` + envelope + `","e":[` + strings.TrimSuffix(strings.Repeat(`{"c":[]},`, 1<<16), ",") + `]}`
	if d := open(t, p, inner); len(d.Events) != 0 || d.Unreadable != nil {
		t.Error("empty inner arrays are no items")
	}
	if d := open(t, p, strings.ReplaceAll(inner, "[]", "[1]")); d.Unreadable == nil || len(d.Events) != 1 {
		t.Error("a batch that grows without bound was taken apart")
	}
	lines := batch("json:$[*]")
	lines.Split.Lines = true
	if d := open(t, build1(t, lines, Settings{}), strings.Repeat("[", 1<<20)); d.Unreadable == nil {
		t.Error("brackets without end are readable")
	}
	if d := open(t, build1(t, lines, Settings{}), "{\"id\":\"1\"}\n\n{\"id\":\"2\"}\n"); len(d.Events) != 2 || d.Events[1].Key != "2" {
		t.Error(d)
	}
}

// TestLargeBatchesAreBuiltOneByOne: what a caller has to hold that takes the events one by one is the request and one event,
// however many times as large all of them together are.
func TestLargeBatchesAreBuiltOneByOne(t *testing.T) {
	const around, items = 1 << 20, 60
	p := build1(t, batch("json:$.e[*]"), Settings{})
	req := request(t, p, `{"x":"`+strings.Repeat("x", around)+`","e":[`+strings.Repeat(`{"id":"1"},`, items-1)+`{"id":"1"}]}`)
	req.Lazy = true
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	d, err := p.Open(req)
	if err != nil || d.Len() != items || d.Batch.Size < items*around || d.Events != nil {
		t.Fatal(d, err)
	}
	n := 0
	for ev := range d.All() {
		if n++; n%20 == 0 {
			if more := live() - before; more > 3*around {
				t.Errorf("at event %d of %d, of %d bytes, %d bytes more are held", n, items, len(ev.Body), more)
			}
		}
	}
	if n != items {
		t.Errorf("%d events came", n)
	}
}

// FuzzSplit: every item's document is JSON that holds that item alone, and the items are those that
// encoding/json sees.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{`{"e":[1,{"a":[2]},"x"]}`, `{"e":[]}`, `{}`, `[]`, `{"e":[1],"e":[2]}`, ` {"b":1, "e" : [ 1 , 2 ] } `, `{"\u0065":[1]}`} {
		f.Add([]byte(seed))
	}
	p := build1(f, batch("json:$.e[*]"), Settings{})
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := p.layout.splitter.items(body)
		if err != nil {
			return
		}
		var want struct{ E []json.RawMessage }
		var members map[string]json.RawMessage
		if json.Unmarshal(body, &members) != nil || members["e"] == nil || json.Unmarshal(members["e"], &want.E) != nil || want.E == nil {
			if len(items) != 1 {
				t.Fatalf("%d items in %q", len(items), body)
			}
			return
		}
		if len(items) != len(want.E) {
			t.Fatalf("%d items in %q, want %d", len(items), body, len(want.E))
		}
		for i, it := range items {
			var alone map[string]json.RawMessage
			if err := json.Unmarshal(it.body(), &alone); err != nil || string(alone["e"]) != "["+it.text+"]" || it.text != string(want.E[i]) {
				t.Fatalf("item %d of %q: %q, %v", i, body, it.body(), err)
			}
		}
	})
}

// TestBatchesInForms: each event is the form with its item alone, as an application of the sender reads it.
func TestBatchesInForms(t *testing.T) {
	s := batch("json:$.events[*]")
	s.Form = "payload"
	p := build1(t, s, Settings{})
	inForm := func(document string) string { return url.Values{"payload": {document}, "team": {"a b"}}.Encode() }
	formed := func(body string) *hookonce.Request {
		req := request(t, p, body)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return req
	}
	for _, lazy := range []bool{false, true} {
		req := formed(inForm(`{"to":"x","events":[{"id":"1","n":"&=%"},{"id":"2"}]}`))
		req.Lazy = lazy
		d, err := p.Open(req)
		if err != nil || d.Unreadable != nil || d.Len() != 2 {
			t.Fatalf("%+v, %v", d, err)
		}
		want, size := []string{`{"to":"x","events":[{"id":"1","n":"&=%"}]}`, `{"to":"x","events":[{"id":"2"}]}`}, int64(0)
		fields, err := s.Fields("item:$.id")
		if err != nil {
			t.Fatal(err)
		}
		for ev := range d.All() {
			size += int64(len(ev.Body))
			if string(ev.Body) != inForm(want[0]) {
				t.Errorf("the body of %s is %s, want %s", ev.Key, ev.Body, inForm(want[0]))
			}
			if got := fields.Read(ev); ev.Key == "" || got[0] != ev.Key || !ev.KeySigned {
				t.Errorf("key %q, in the event %q", ev.Key, got)
			}
			want = want[1:]
		}
		if d.Batch != nil && d.Batch.Size != size {
			t.Errorf("%d bytes are announced, %d come", d.Batch.Size, size)
		}
	}
	for _, body := range []string{"team=a", inForm(`{"events":`), inForm("")} {
		if d, err := p.Open(formed(body)); err != nil || d.Unreadable == nil || d.Len() != 1 || d.Events[0].Key != "" || string(d.Events[0].Body) != body {
			t.Errorf("%s: %+v, %v", body, d, err)
		}
	}
	if d := open(t, p, `{"events":[{"id":"1"},{"id":"2"}]}`); d.Len() != 2 || string(d.Events[0].Body) != `{"events":[{"id":"1"}]}` {
		t.Errorf("JSON as it is: %+v", d)
	}
}
