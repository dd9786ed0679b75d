package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(cellProcessVariable); path != "" {
		cellProcess(path)
		return
	}
	throwaway.TestsAtOnce(4)
	goleak.VerifyTestMain(m, pgtest.Kept())
}

// patience bounds every wait for something that must happen, also on a machine that is busy with other tests.
const patience = 100 * time.Second

// onEveryStore runs a test on each kind of store, with an empty one for every run.
func onEveryStore(t *testing.T, test func(t *testing.T, store config.Store)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteStore(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, postgresStore(t)) })
}

func sqliteStore(t *testing.T) config.Store {
	return config.Store{Driver: config.SQLite, DSN: filepath.Join(t.TempDir(), "hookonce.db")}
}

func postgresStore(t *testing.T) config.Store {
	return config.Store{Driver: config.Postgres, DSN: pgtest.DSN(t)}
}

// configured returns a configuration on free ports with one source called "orders" that delivers to
// the sink and tries again at once.
func configured(store config.Store, to string) *config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Store = "127.0.0.1:0", "127.0.0.1:0", store
	cfg.Delivery.Backoff, cfg.Delivery.BackoffMax = 20*time.Millisecond, 100*time.Millisecond
	cfg.Delivery.Attempts = 100
	cfg.Sources = []config.Source{source("orders", to)}
	return cfg
}

// unhurried gives attempts and leases time enough on any machine: what is delivered again is delivered again for another
// reason.
func unhurried(cfg *config.Config) *config.Config {
	cfg.Delivery.Timeout, cfg.Delivery.Lease = patience, patience
	return cfg
}

func source(name, to string) config.Source {
	s := config.DefaultSource()
	s.Name, s.Provider, s.To = name, "hmac", to
	s.Secrets = []settings.Secret{settings.Literal("secret-of-" + name)}
	return s
}

// start starts a gateway that is closed when the test ends.
func start(t *testing.T, cfg *config.Config) *Gateway {
	t.Helper()
	g, err := Start(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	return g
}

func closeNow(t *testing.T, g *Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := g.Close(ctx); err != nil {
		t.Error(err)
	}
}

// client is a sender that keeps many connections.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// reply is what a sender reads.
type reply struct {
	status  int
	verdict string // the header Hookonce-Status
	retry   string // the header Retry-After
	again   int    // it is the answer to another try, after so many: what became of those is not known here
}

// event is a body with that id. An empty id makes an event without a key.
func event(id string) []byte {
	if id == "" {
		return []byte(`{"type":"order.paid"}`)
	}
	return fmt.Appendf(nil, `{"id":%q,"type":"order.paid"}`, id)
}

// post signs the body for the source and posts it patiently.
func post(t *testing.T, c *http.Client, g *Gateway, s config.Source, body []byte) (reply, error) {
	t.Helper()
	header := signed(t, s, body)
	return patiently(func() (reply, error) { return postSigned(c, g, s.Name, header, body) })
}

// patiently posts something again to which a store on a busy machine took longer than a sender waits for it: the 503 that says so
// is no fault. One that comes sooner has another reason, and is returned.
func patiently(send func() (reply, error)) (r reply, err error) {
	for try := range 4 {
		began := time.Now()
		r, err = send()
		r.again = try
		if err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" || time.Since(began) < acceptTimeout {
			break
		}
	}
	return r, err
}

// postOnce signs the body for the source and posts it once.
func postOnce(t *testing.T, c *http.Client, g *Gateway, s config.Source, body []byte) (reply, error) {
	t.Helper()
	return postSigned(c, g, s.Name, signed(t, s, body), body)
}

// signed returns the headers of a body that is signed for the source.
func signed(t *testing.T, s config.Source, body []byte) http.Header {
	t.Helper()
	p, err := s.NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	r := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: body, Now: time.Now()}
	if err := p.Sign(r); err != nil {
		t.Fatal(err)
	}
	return r.Header
}

func postSigned(c *http.Client, g *Gateway, name string, h http.Header, body []byte) (reply, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+g.Addr().String()+"/in/"+name, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = h
	res, err := c.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return reply{status: res.StatusCode, verdict: res.Header.Get("Hookonce-Status"), retry: res.Header.Get("Retry-After")}, err
}

// pause waits before something is sent for the n-th time again: for 5 ms, and twice as long each time, up to 640 ms. Providers wait
// longer; who does not wait at all takes the machine from those that are waited for.
func pause(n int) {
	if n > 0 {
		<-time.After(5 * time.Millisecond << min(n-1, 7))
	}
}

// insist posts until the answer is a 2xx, as a provider does; like a provider it also tries again when
// the connection breaks. Any other answer than a retryable 503 fails the test.
func insist(t *testing.T, c *http.Client, g *Gateway, s config.Source, body []byte) reply {
	t.Helper()
	deadline := time.Now().Add(patience)
	for try := 0; time.Now().Before(deadline); try++ {
		pause(try)
		r, err := postOnce(t, c, g, s, body)
		r.again = try
		switch {
		case err != nil:
		case r.status/100 == 2:
			return r
		case r.status != http.StatusServiceUnavailable || r.retry == "":
			t.Errorf("answer %+v, want a 2xx or a retryable 503", r)
			return r
		}
	}
	t.Error("no 2xx in time")
	return reply{}
}

// sink is the destination: it counts what it is given by the id in the body and by Idempotency-Key.
type sink struct {
	*httptest.Server
	board
	seen  map[string]int             // by id
	keys  map[string]map[string]bool // Idempotency-Key values by id
	total int
	// answer decides the status by id and how often it came, this time included. Nil: 200.
	answer func(id string, times int) int
}

func newSink(t *testing.T) *sink {
	s := &sink{board: newBoard(), seen: map[string]int{}, keys: map[string]map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ID     string
		Events []struct{ ID string } // of a batch: the event's item alone
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Events) > 1 {
		http.Error(w, "this is no event", http.StatusBadRequest)
		return
	}
	for _, item := range body.Events {
		body.ID = item.ID
	}
	w.WriteHeader(s.note(body.ID, r.Header.Get("Idempotency-Key")))
}

func (s *sink) note(id, key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[id]++
	s.total++
	if s.keys[id] == nil {
		s.keys[id] = map[string]bool{}
	}
	s.keys[id][key] = true
	s.changed()
	if s.answer == nil {
		return http.StatusOK
	}
	return s.answer(id, s.seen[id])
}

// board is what a destination notes under a lock, and tests wait for.
type board struct {
	mu   sync.Mutex
	more chan struct{} // closed and replaced at every change
}

func newBoard() board { return board{more: make(chan struct{})} }

// changed wakes those who wait. The caller holds the lock.
func (b *board) changed() {
	close(b.more)
	b.more = make(chan struct{})
}

// await waits until enough has been noted to satisfy done, which is called under the lock.
func (b *board) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		b.mu.Lock()
		ok, more := done(), b.more
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// count returns how many deliveries there were.
func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// awaitIDs waits until each of the ids has been delivered.
func (s *sink) awaitIDs(t *testing.T, ids []string) {
	t.Helper()
	s.await(t, fmt.Sprintf("%d ids", len(ids)), func() bool {
		for _, id := range ids {
			if s.seen[id] == 0 {
				return false
			}
		}
		return true
	})
}

// eachOnce fails the test unless exactly the ids were delivered, each once.
func (s *sink) eachOnce(t *testing.T, ids []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.seen[id] != 1 {
			t.Errorf("%s was delivered %d times", id, s.seen[id])
		}
	}
	if s.total != len(ids) {
		t.Errorf("%d deliveries, want %d", s.total, len(ids))
	}
}

// ids returns n ids that begin with prefix.
func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// get reads an address of the admin listener.
func get(t *testing.T, c *http.Client, g *Gateway, path string) (*http.Response, string) {
	t.Helper()
	res, err := c.Get("http://" + g.AdminAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, strings.TrimSpace(string(body))
}
