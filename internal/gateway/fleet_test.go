package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/fleet"
)

// fleetOf asks a gateway what destinations and gateways there are.
func fleetOf(t *testing.T, g *Gateway) (list fleet.DestinationList) {
	t.Helper()
	call{method: http.MethodGet, path: "/api/v1/destinations"}.do(t, g, &list)
	return list
}

// awaitFleet waits until a gateway counts so many others and itself as running, gone and healthy ones of orders.
func awaitFleet(t *testing.T, g *Gateway, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list := fleetOf(t, g)
		running, gone := 0, 0
		for _, g := range list.Gateways {
			if g.Gone {
				gone++
			} else {
				running++
			}
		}
		got = fmt.Sprintf("%d running, %d gone", running, gone)
		if len(list.Destinations) > 0 {
			got += fmt.Sprintf(", %s in %d", list.Destinations[0].Health.State, len(list.Destinations[0].Gateways))
		}
		if got == want {
			return
		}
	}
	t.Fatalf("%s; want %s", got, want)
}

// Three gateways on one database know of each other, and each shows the same; one that is killed is told as gone, and
// one that stops in order is not told of any more.
func TestFleet(t *testing.T) {
	t.Parallel()
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer sink.Close()
	store := postgresStore(t)
	var ahead atomic.Int64 // of the clock of all gateways
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	var all []*Gateway
	for range 3 {
		g, err := Start(t.Context(), configured(store, sink.URL), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeNow(t, g) })
		all = append(all, g)
	}
	for _, g := range all {
		awaitFleet(t, g, "3 running, 0 gone, healthy in 3")
	}
	all[2].fleet.stop() // as if it was killed: it says nothing any more, and takes no leave
	<-all[2].fleet.ended
	ahead.Store(int64(fleet.Gone + time.Second))
	for _, g := range all[:2] {
		awaitFleet(t, g, "2 running, 1 gone, healthy in 2")
	}
	closeNow(t, all[1])
	awaitFleet(t, all[0], "1 running, 1 gone, healthy in 1")
	ahead.Store(int64(forgetAfter + time.Minute))
	if err := all[0].fleet.announce(context.Background()); err != nil {
		t.Fatal(err)
	}
	awaitFleet(t, all[0], "1 running, 0 gone, healthy in 1")
}

// With SQLite there is one.
func TestFleetOfOne(t *testing.T) {
	t.Parallel()
	g := start(t, configured(config.Store{Driver: config.SQLite, DSN: t.TempDir() + "/hookonce.db"}, "http://127.0.0.1:1/"))
	awaitFleet(t, g, "1 running, 0 gone, healthy in 1")
	if list := fleetOf(t, g); !list.Gateways[0].Answers || list.Gateways[0].PID == 0 || list.Gateways[0].Version != "(devel)" {
		t.Errorf("gateways %+v", list.Gateways)
	}
}
