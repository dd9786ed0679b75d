package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// A stop under load loses nothing and doubles nothing: what was acknowledged before, during and after
// it is delivered once.
func TestStopUnderLoad(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := unhurried(configured(store, sink.URL))
		var acknowledged []string
		for _, round := range []string{"first", "second", "third"} {
			g := start(t, cfg)
			acknowledged = append(acknowledged, load(t, cfg, g, round, func(sent int) {
				if sent == 100 {
					go closeNow(t, g)
				}
			})...)
			closeNow(t, g)
		}
		if len(acknowledged) < 300 {
			t.Fatalf("only %d events were acknowledged", len(acknowledged))
		}
		start(t, cfg)
		sink.awaitIDs(t, acknowledged)
		sink.mu.Lock()
		defer sink.mu.Unlock()
		for id, n := range sink.seen {
			if n != 1 {
				t.Errorf("%s was delivered %d times", id, n)
			}
		}
	})
}

// load sends until the gateway refuses connections, and returns the ids that were acknowledged.
// progress is called with the number of acknowledged events, one call at a time.
func load(t *testing.T, cfg *config.Config, g *Gateway, prefix string, progress func(sent int)) []string {
	t.Helper()
	c := client(t)
	var mu sync.Mutex
	var acknowledged []string
	var senders sync.WaitGroup
	for w := range 8 {
		senders.Go(func() {
			for _, id := range ids(prefix+string(rune('a'+w)), 100_000) {
				r, err := postOnce(t, c, g, cfg.Sources[0], event(id))
				if err != nil {
					return
				}
				if r.status/100 != 2 {
					pause(1)
					continue
				}
				mu.Lock()
				acknowledged = append(acknowledged, id)
				progress(len(acknowledged))
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	return acknowledged
}

// A delivery that is under way when time runs out is cut off and handed back: the stop stays within
// its deadline, and the event is delivered after the next start.
func TestStopCutsOffSlowDeliveries(t *testing.T) {
	onEveryStore(t, func(t *testing.T, store config.Store) {
		release, arrived := make(chan struct{}), make(chan string, 1000)
		slow := newSink(t)
		answer := sync.OnceFunc(func() { close(release) })
		t.Cleanup(answer)
		slow.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			arrived <- string(body)
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		await := func(body []byte) {
			for timeout := time.After(patience); ; {
				select {
				case got := <-arrived:
					if got == string(body) {
						return
					}
				case <-timeout:
					t.Fatalf("%s did not arrive in %v", body, patience)
				}
			}
		}
		cfg := unhurried(configured(store, slow.URL))
		var body []byte
		closesInTime(t, cfg, func(g *Gateway, try int) {
			body = event(fmt.Sprint("try-", try)) // what was cut off before comes as well
			insist(t, client(t), g, cfg.Sources[0], body)
			await(body)
		})
		answer()
		start(t, cfg)
		await(body)
	})
}

// What waits in a gateway that stops is delivered by another one at once, while the stop still waits for what is under way. Neither that,
// nor what comes to be due meanwhile, is taken back for nobody.
func TestStopLeavesTheRestToOthers(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{}, 1)
	answer := sync.OnceFunc(func() { close(release) })
	sink := newSink(t)
	t.Cleanup(answer)
	sink.answer = func(id string, _ int) int {
		if id == "slow" {
			sink.mu.Unlock()
			arrived <- struct{}{}
			<-release
			sink.mu.Lock()
		}
		return http.StatusOK
	}
	cfg := unhurried(configured(config.Store{Driver: config.Postgres, DSN: pgtest.DSN(t)}, sink.URL))
	cfg.Delivery.Concurrency = 1
	c, first := client(t), start(t, cfg)
	insist(t, c, first, cfg.Sources[0], event("slow"))
	<-arrived
	waiting := ids("waiting", 200)
	for _, id := range waiting {
		insist(t, c, first, cfg.Sources[0], event(id))
	}
	start(t, cfg)
	closed := make(chan struct{})
	go func() { defer close(closed); closeNow(t, first) }()
	sink.awaitIDs(t, waiting)
	select {
	case <-closed:
		t.Error("the stop did not wait for what was under way")
	default:
	}
	answer()
	<-closed
	sink.mu.Lock()
	defer sink.mu.Unlock()
	for id, n := range sink.seen {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
}

// closesInTime starts a gateway, has it meet what takes forever, and closes it: cleanly, and before its time is over. On a machine
// that is too busy for that it tries again, and has no more time then: who overruns it by itself does so each time.
func closesInTime(t *testing.T, cfg *config.Config, meet func(g *Gateway, try int)) {
	t.Helper()
	const limit = 1500 * time.Millisecond
	for try, end := 0, time.Now().Add(patience); ; try++ {
		g, err := Start(t.Context(), cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		meet(g, try)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		began := time.Now()
		err = g.Close(ctx)
		took := time.Since(began)
		cancel()
		if err == nil && took <= limit {
			return
		}
		if time.Now().After(end) {
			t.Errorf("Close, within %v, at the last of %d tries: %v after %v", limit, try+1, err, took)
			return
		}
	}
}

// A client that never finishes its body keeps nobody from stopping cleanly; one whose event is being
// stored does, because nobody knows what became of it.
func TestStopCutsOffSlowSenders(t *testing.T) {
	cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
	dangle := func(g *Gateway, _ int) {
		conn, err := net.Dial("tcp", g.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, "POST /in/orders HTTP/1.1\r\nHost: gw.test\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("answered %q, %v", line, err) // this one says that the body is being read
		}
	}
	t.Run("reading", func(t *testing.T) { closesInTime(t, cfg, dangle) })
	t.Run("storing", func(t *testing.T) {
		g, err := Start(t.Context(), cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		dangle(g, 0)
		g.ingest.storing = func() int { return 1 }
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := g.Close(ctx); err == nil || !strings.Contains(err.Error(), "being stored") {
			t.Errorf("Close: %v", err)
		}
	})
}

// Close is idempotent, and safe to call from several goroutines.
func TestCloseTwice(t *testing.T) {
	t.Parallel()
	g := start(t, configured(sqliteStore(t), "http://127.0.0.1:1/"))
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() { closeNow(t, g) })
	}
	closers.Wait()
}

// While the database is away the gateway answers a retryable 503 and is not ready; when it is back,
// everything works again without a restart, and nothing that was acknowledged is missing.
func TestStoreDownAndBack(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	sink := newSink(t)
	cfg := configured(config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, sink.URL)
	g, c := start(t, cfg), client(t)
	insist(t, c, g, cfg.Sources[0], event("before"))
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	r, err := postOnce(t, c, g, cfg.Sources[0], event("during"))
	if err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" {
		t.Errorf("while the database is away: %+v %v, want 503 with Retry-After", r, err)
	}
	unready(t, c, g)
	if res, body := get(t, c, g, "/healthz"); res.StatusCode != http.StatusOK {
		t.Errorf("healthz: %d %s, want 200: a restart would not bring the database back", res.StatusCode, body)
	}
	if err := cluster.Restart(); err != nil {
		t.Fatal(err)
	}
	insist(t, c, g, cfg.Sources[0], event("during"))
	insist(t, c, g, cfg.Sources[0], event("after"))
	sink.awaitIDs(t, []string{"before", "during", "after"})
	awaitReady(t, c, g) // what it says may be a second old
}

// The database is killed and comes back under load, several times: no acknowledged event is lost. An
// outage that outlasts a lease may repeat a delivery, but only under its key.
func TestDatabaseKilledUnderLoad(t *testing.T) {
	testskip.Long(t)
	t.Parallel() // it waits for a server of its own
	cluster := pgtest.Start(t, pgtest.Options{Fsync: true})
	sink := newSink(t)
	cfg := configured(config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, sink.URL)
	g := start(t, cfg)
	loaded := make(chan []string)
	go func() { loaded <- load(t, cfg, g, "evt", func(int) {}) }()
	for range 3 {
		before := sink.count()
		sink.await(t, "deliveries before the next kill", func() bool { return sink.total > before+50 })
		if err := cluster.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	before := sink.count()
	sink.await(t, "deliveries after the last restart", func() bool { return sink.total > before+50 })
	closeNow(t, g)
	acknowledged := <-loaded
	start(t, cfg)
	sink.awaitIDs(t, acknowledged)
	sink.mu.Lock()
	defer sink.mu.Unlock()
	for id, keys := range sink.keys {
		if len(keys) != 1 {
			t.Errorf("%s came under %d keys", id, len(keys))
		}
	}
}
