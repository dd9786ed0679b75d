package spec

import (
	"fmt"
	"testing"

	"github.com/hookonce/hookonce"
)

// TestRequestsShareNothing: what one request says is in no other one, though what they are read with is used again: not in
// one of the same sender that says less, nor of another one, nor in a batch whose events are read later.
func TestRequestsShareNothing(t *testing.T) {
	s := plain()
	s.Event.Key, s.Event.Type, s.Event.Tenant = [][]Value{{"json:$.id"}}, []Value{"json:$.type"}, []Value{"json:$.tenant"}
	talkative := build1(t, s, Settings{})
	s = plain()
	s.Event.Key, s.Event.Type = [][]Value{{"json:$.key"}}, []Value{"json:$.x.y.z", "json:$.kind"}
	other := build1(t, s, Settings{})
	s = plain()
	s.Split, s.Event.Key, s.Event.Type = &Split{Items: []Value{"json:$.e[*]"}}, [][]Value{{"item:$.id"}}, []Value{"parent:$.type"}
	batches := build1(t, s, Settings{})
	for range 20 { // a pool may lose what it is given
		req := request(t, batches, `{"type":"batched","e":[{"id":"1"},{"id":"2"},{"id":"3"}]}`)
		req.Lazy = true
		batch, err := batches.Open(req)
		if err != nil || batch.Batch == nil {
			t.Fatal(batch, err)
		}
		open(t, talkative, `{"id":"x","type":"y"}`)
		full := open(t, talkative, `{"id":"a","type":"b","tenant":"c"}`).Events[0]
		bare := open(t, talkative, `{}`).Events[0]
		empty := open(t, other, `{"id":"d"}`).Events[0]
		_, err = talkative.Open(&hookonce.Request{Method: "POST", Body: []byte(`{"id":"e"}`), Now: now})
		if full.Key != "a" || full.Type != "b" || full.Tenant != "c" || err == nil {
			t.Fatalf("%+v, %v", full, err)
		}
		if bare.Key+bare.Type+bare.Tenant+bare.Scope != "" || empty.Key+empty.Type+empty.Tenant != "" {
			t.Fatalf("what others said is in %+v and %+v", bare, empty)
		}
		n := 0
		for ev := range batch.All() {
			n++
			open(t, talkative, `{"id":"f","type":"g"}`)
			if ev.Key != fmt.Sprint(n) || ev.Type != "batched" {
				t.Fatalf("event %d of the batch is %+v", n, ev)
			}
		}
		if n != 3 {
			t.Fatalf("%d events", n)
		}
	}
}
