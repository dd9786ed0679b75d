package hookonce_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookonce/hookonce"
)

// outbound is what a handler asks of others.
type outbound struct{ method, host, path, query, body, step string }

var outbounds = rapid.SliceOf(rapid.Custom(func(t *rapid.T) outbound {
	text := func(name string) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, name) }
	return outbound{
		method: rapid.SampledFrom([]string{"POST", "PUT"}).Draw(t, "method"),
		host:   rapid.SampledFrom([]string{"a.example", "A.example", "b.example"}).Draw(t, "host"),
		path:   text("path"), query: text("query"), body: text("body"), step: text("step"),
	}
}))

// identity is what makes two calls of one attempt the same call.
func (o outbound) identity() outbound {
	if o.step != "" {
		return outbound{step: o.step}
	}
	o.host = strings.ToLower(o.host)
	return o
}

func (o outbound) send(t *rapid.T, ctx context.Context, w *wire) string {
	if o.step != "" {
		ctx = hookonce.WithStep(ctx, o.step)
	}
	req, err := http.NewRequestWithContext(ctx, o.method, "https://"+o.host+"/"+o.path+"?"+o.query, strings.NewReader(o.body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hookonce.Transport(w).RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	return w.keys[len(w.keys)-1]
}

// Whatever a handler calls: the same calls have the same keys, within an attempt and when it runs again as far as
// it came, and different calls, or those of another event, never do.
func TestKeysOfAnyCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := outbounds.Draw(t, "calls")
		w, ctx := new(wire), attempt("evt_1")
		keys, owners := map[outbound]string{}, map[string]outbound{}
		for _, call := range calls {
			key, id := call.send(t, ctx, w), call.identity()
			if first, known := keys[id]; known && first != key {
				t.Fatalf("%+v has key %s, and had %s", call, key, first)
			}
			if owner, taken := owners[key]; taken && owner != id || key == "" {
				t.Fatalf("%+v and %+v share the key %q", owner, id, key)
			}
			keys[id], owners[key] = key, id
		}
		again, other := new(wire), new(wire)
		ctx, others := attempt("evt_1"), attempt("evt_2")
		for i, call := range calls[:rapid.IntRange(0, len(calls)).Draw(t, "crash")] {
			if key := call.send(t, ctx, again); key != w.keys[i] {
				t.Fatalf("call %d has key %s when it runs again, and had %s", i, key, w.keys[i])
			}
			if owner, taken := owners[call.send(t, others, other)]; taken {
				t.Fatalf("another event has the key of %+v", owner)
			}
		}
	})
}
