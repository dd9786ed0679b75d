package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

// More events than one destination may hold go to three. One never answers and one always fails: the
// third gets everything meanwhile, once. When they are well they get everything too.
func TestIllDestinationsHoldUpNobody(t *testing.T) {
	const events = 600
	onEveryStore(t, func(t *testing.T, store config.Store) {
		healthy, silent, failing := newSink(t), newSink(t), newSink(t)
		recovered := make(chan struct{})
		var once sync.Once
		heal := func() { once.Do(func() { close(recovered) }) }
		t.Cleanup(heal) // or the server would not close
		silent.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-recovered
			silent.ServeHTTP(w, r)
		})
		var refused atomic.Int32
		failing.answer = func(string, int) int {
			select {
			case <-recovered:
				return http.StatusOK
			default:
				refused.Add(1)
				return http.StatusServiceUnavailable
			}
		}
		cfg := settings(store, "")
		cfg.Delivery.Timeout, cfg.Delivery.Backoff, cfg.Delivery.BackoffMax = time.Hour, 200*time.Millisecond, time.Second
		cfg.Destinations = []config.Destination{
			cfg.NewDestination("healthy", healthy.URL), cfg.NewDestination("silent", silent.URL), cfg.NewDestination("failing", failing.URL),
		}
		for _, name := range ids("idle", 5) { // a share of what is held is 512 now
			cfg.Destinations = append(cfg.Destinations, cfg.NewDestination(name, healthy.URL))
		}
		cfg.Sources[0].Routes = []config.Route{{To: []string{"silent", "failing", "healthy"}}}
		g, c := start(t, cfg), client(t)
		all := ids("evt", events)
		var senders sync.WaitGroup
		for part := range 8 {
			senders.Go(func() {
				for i := part; i < events; i += 8 {
					insist(t, c, g, cfg.Sources[0], event(all[i]))
				}
			})
		}
		senders.Wait()
		healthy.awaitIDs(t, all)
		if silent.count() != 0 || refused.Load() == 0 {
			t.Errorf("%d were answered by the silent one, %d by the failing one", silent.count(), refused.Load())
		}
		heal()
		silent.awaitIDs(t, all)
		failing.awaitIDs(t, all)
		closeNow(t, g)
		healthy.eachOnce(t, all)
		silent.eachOnce(t, all)
		if n := failing.count() - int(refused.Load()); n != events {
			t.Errorf("the failing one took %d after it recovered, want %d", n, events)
		}
		// It got probes alone while it was ill: not every event was tried.
		if n := refused.Load(); n >= events {
			t.Errorf("%d attempts were made while it failed", n)
		}
	})
}
