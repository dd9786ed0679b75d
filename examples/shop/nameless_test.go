package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// An event that does not say which order, refund or payout it is about is on record as dead, each for itself, and
// books nothing.
func TestEventsThatNameNothing(t *testing.T) {
	d, err := open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := newShop(d, addresses{mail: "http://127.0.0.1:1"}, secret)
	for _, kind := range []string{"charge.succeeded", "refund.updated", "payout.paid", "price.updated"} {
		for i := range 2 {
			key := fmt.Sprint("evt_", strings.ReplaceAll(kind, ".", "_"), i)
			body := fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"created":1770091506,"data":{"object":{"metadata":{}}}}`, key, kind)
			r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader(body))
			if err := sign(r, []byte(body)); err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, r)
			c, err := d.store.Lookup(t.Context(), hookonce.Ref{Source: "stripe", Key: key})
			if w.Code != http.StatusOK || err != nil || c.State != hookonce.StateDead {
				t.Errorf("%s: answered %d, and the claim is %s, %v", key, w.Code, c.State, err)
			}
		}
	}
	if n := count(t, d, "SELECT count(*) FROM hookonce_states"); n != 0 {
		t.Errorf("%d state machines of things without a name", n)
	}
	if err := s.shipped(t.Context(), message{ID: "m1"}); err == nil {
		t.Error("a message without an order is shipped")
	}
}
