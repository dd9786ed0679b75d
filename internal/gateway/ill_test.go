package gateway

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/testskip"
)

// More events than one destination may hold go to three. One never answers and one always fails: the
// third gets everything meanwhile, once. When they are well they get everything too.
func TestIllDestinationsHoldUpNobody(t *testing.T) {
	testskip.Long(t)
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
		cfg := configured(store, "")
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
		failing.await(t, "all events to be taken by the failing one", func() bool { return failing.total-int(refused.Load()) >= events })
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

// Three hundred events that a destination always answers with 500, then a thousand that it takes, and those of a
// second source: all of them are delivered within seconds, whether the poison has the store to itself for a while
// or not.
func TestPoisonHoldsUpNobody(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSink(t)
		app.answer = func(id string, _ int) int {
			if strings.HasPrefix(id, "poison") {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		cfg := configured(store, "")
		cfg.Delivery = config.Default().Delivery
		cfg.Destinations = []config.Destination{cfg.NewDestination("app", app.URL)}
		cfg.Sources = append(cfg.Sources, source("second", ""))
		for i := range cfg.Sources {
			cfg.Sources[i].Routes = []config.Route{{To: []string{"app"}}}
		}
		g, c := start(t, cfg), client(t)
		send := func(source config.Source, all []string) {
			var senders sync.WaitGroup
			for part := range 8 {
				senders.Go(func() {
					for i := part; i < len(all); i += 8 {
						insist(t, c, g, source, event(all[i]))
					}
				})
			}
			senders.Wait()
		}
		send(cfg.Sources[0], ids("poison", 300))
		began := time.Now()
		healthy, others := ids("healthy", 1036), ids("other", 37)
		send(cfg.Sources[0], healthy)
		send(cfg.Sources[1], others)
		accepted := time.Since(began) // which says how busy the machine is
		app.awaitIDs(t, slices.Concat(healthy, others))
		if took := time.Since(began); took > 20*time.Second+5*accepted {
			t.Errorf("it took %v, of which %v until all were accepted", took, accepted)
		}
		for _, d := range g.deliver.Destinations() {
			if d.State == deliver.Ill {
				t.Errorf("after a thousand successes: %+v", d)
			}
		}
	})
}

// elsewhere returns an address at which nobody listens, and which nobody else comes to use meanwhile: other tests use
// 127.0.0.1 where the machine has more.
func elsewhere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.9.9.9:0")
	if err != nil {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	defer l.Close()
	return l.Addr().String()
}

// A destination that was away is noticed to be back, and what it missed comes by and by. TestIllnesses of deliver counts the
// seconds that takes, on a clock of its own.
func TestRecoveryIsNoticed(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		listening := elsewhere(t)
		cfg := configured(store, "http://"+listening)
		cfg.Delivery = config.Default().Delivery
		g, c := start(t, cfg), client(t)
		all := ids("evt", 100)
		for _, id := range all {
			insist(t, c, g, cfg.Sources[0], event(id))
		}
		for end := time.Now().Add(patience); g.deliver.Destinations()[0].State != deliver.Ill; <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it is not ill after %v", patience)
			}
		}
		back := newSink(t)
		l, err := net.Listen("tcp", listening)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: back}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
		back.awaitIDs(t, all)
		closeNow(t, g)
	})
}
