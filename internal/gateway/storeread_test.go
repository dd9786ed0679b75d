package gateway

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// Lists and pages are read at the standby, say how old they are, show at once what an operator did, and are read at the
// primary while the standby is away. A database that is no standby of the store is refused.
func TestStoreRead(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	dsn := primary.DSN(t)
	standby := primary.Standby(t)
	sink := newSink(t)
	cfg := configured(config.Store{Driver: config.Postgres, DSN: dsn}, sink.URL)
	cfg.StoreRead = config.Store{Driver: config.Postgres, DSN: pgtest.DSN(t)}
	if _, err := Start(t.Context(), cfg, Options{}); !errors.Is(err, pgstandby.ErrNoCopy) || !strings.Contains(err.Error(), "store_read") {
		t.Fatalf("another database than the store's: %v", err)
	}
	cfg.StoreRead.DSN = standby.Alone(dsn)
	g, c := start(t, cfg), client(t)
	// listed asks for the list until it has so many events and comes, or does not come, from the standby.
	listed := func(what string, events int, there bool) http.Header {
		t.Helper()
		for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
			var list struct{ Events []any }
			res := call{method: "GET", path: "/api/v1/events"}.do(t, g, &list)
			if fromStandby := res.Header.Get(api.AsOfHeader) != ""; res.StatusCode == 200 && len(list.Events) == events && fromStandby == there {
				return res.Header
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d %v, %v", what, res.StatusCode, list, res.Header)
			}
		}
	}
	insist(t, c, g, cfg.Sources[0], event("first"))
	listed("it has arrived at the standby", 1, true)
	if err := standby.HoldReplay(true); err != nil {
		t.Fatal(err)
	}
	insist(t, c, g, cfg.Sources[0], event("second"))
	h := listed("the standby is behind", 1, true)
	if _, page := get(t, c, g, "/events"); !strings.Contains(page, "Read from the standby") {
		t.Error("the page does not say that it is old")
	}
	if asOf := api.AsOf(h); asOf.IsZero() || time.Since(asOf) < 0 {
		t.Errorf("complete up to %v", asOf)
	}
	// What is decided is decided at the primary: the replay finds what the standby does not have.
	again := call{method: "POST", path: "/api/v1/events/orders/second/replay", body: map[string]any{"reason": "again", "force": true}}
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) { // what is being delivered is not replayed
		res := again.do(t, g, nil)
		if res.StatusCode == 200 {
			break
		}
		if res.StatusCode != http.StatusConflict || time.Now().After(deadline) {
			t.Fatalf("the replay is answered %d", res.StatusCode)
		}
	}
	res := call{method: "GET", path: "/api/v1/events"}.do(t, g, nil)
	if res.Header.Get(api.AsOfHeader) != "" {
		t.Error("after what an operator did the standby is asked that does not have it")
	}
	listed("what an operator did is shown", 2, false)
	if err := standby.HoldReplay(false); err != nil {
		t.Fatal(err)
	}
	listed("the standby has it", 2, true)
	if err := standby.Stop(true); err != nil {
		t.Fatal(err)
	}
	listed("the standby is away", 2, false)
	if err := standby.Restart(); err != nil {
		t.Fatal(err)
	}
	listed("the standby is back", 2, true)
}
