package gateway

import (
	"errors"
	"net/http"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// A gateway delivers from a server that says that it is YugabyteDB and refuses what that has not. Claims of the library,
// which would not hold there, it does not keep.
func TestYugabyte(t *testing.T) {
	t.Parallel()
	sink, c := newSink(t), client(t)
	cfg := configured(config.Store{Driver: config.Postgres, DSN: pgproxy.New(t, pgtest.DSN(t), pgproxy.Yugabyte)}, sink.URL)
	g := start(t, cfg)
	for range 2 {
		if r := insist(t, c, g, cfg.Sources[0], event("one")); r.status != http.StatusOK {
			t.Fatalf("%+v", r)
		}
	}
	sink.awaitIDs(t, []string{"one"})
	closeNow(t, g)
	if g, err := Start(t.Context(), guarded(cfg.Store, sink.URL), Options{}); !errors.Is(err, ddl.ErrYugabyte) {
		if err == nil {
			closeNow(t, g)
		}
		t.Errorf("a gateway with a service in mode idempotency: %v", err)
	}
	sink.mu.Lock()
	defer sink.mu.Unlock()
	if sink.total != 1 {
		t.Errorf("delivered %d times", sink.total)
	}
}
