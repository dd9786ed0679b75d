package hookonce_test

import (
	"context"
	"errors"
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

// identity is what the key of a call is made of.
func (o outbound) identity() outbound {
	if o.step != "" {
		return outbound{step: o.step}
	}
	return outbound{method: o.method, host: strings.ToLower(o.host), path: o.path}
}

// content is what must be the same in calls without a step that are the same call.
func (o outbound) content() outbound {
	if o.step != "" {
		return outbound{}
	}
	return outbound{query: o.query, body: o.body}
}

// send returns the key that came; empty if the call was refused.
func (o outbound) send(t *rapid.T, ctx context.Context, w *wire) string {
	if o.step != "" {
		ctx = hookonce.WithStep(ctx, o.step)
	}
	req, err := http.NewRequestWithContext(ctx, o.method, "https://"+o.host+"/"+o.path+"?"+o.query, strings.NewReader(o.body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hookonce.Transport(w).RoundTrip(req); err != nil {
		if !errors.Is(err, hookonce.ErrUnnamedCall) {
			t.Fatal(err)
		}
		return ""
	}
	return w.keys[len(w.keys)-1]
}

// Whatever a handler calls: the same calls have the same keys, within an attempt and when it runs again as far
// as it came, calls with other names or addresses, or those of another event, never do, and calls that nothing
// but their content tells apart are refused.
func TestKeysOfAnyCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := outbounds.Draw(t, "calls")
		w, ctx := new(wire), attempt("evt_1")
		keys, owners, contents := map[outbound]string{}, map[string]outbound{}, map[outbound]outbound{}
		var got []string
		for _, call := range calls {
			key, id := call.send(t, ctx, w), call.identity()
			got = append(got, key)
			first, known := contents[id]
			if !known {
				contents[id], first = call.content(), call.content()
			}
			if (key == "") != (first != call.content()) {
				t.Fatalf("%+v has key %q after a call with %+v", call, key, first)
			}
			if key == "" {
				continue
			}
			if first, known := keys[id]; known && first != key {
				t.Fatalf("%+v has key %s, and had %s", call, key, first)
			}
			if owner, taken := owners[key]; taken && owner != id {
				t.Fatalf("%+v and %+v share the key %q", owner, id, key)
			}
			keys[id], owners[key] = key, id
		}
		again, other := new(wire), new(wire)
		ctx, others := attempt("evt_1"), attempt("evt_2")
		for i, call := range calls[:rapid.IntRange(0, len(calls)).Draw(t, "crash")] {
			if key := call.send(t, ctx, again); key != got[i] {
				t.Fatalf("call %d has key %s when it runs again, and had %s", i, key, got[i])
			}
			if owner, taken := owners[call.send(t, others, other)]; taken {
				t.Fatalf("another event has the key of %+v", owner)
			}
		}
	})
}
