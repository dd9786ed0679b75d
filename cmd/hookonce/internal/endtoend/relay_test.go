package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
)

// openOutbox returns an empty outbox on Postgres, and where it is.
func openOutbox(t *testing.T) (*pgstore.Store, string) {
	t.Helper()
	dsn := pgtest.DSN(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	return store, dsn
}

// startRelay starts a process that posts the effects called mail.
func startRelay(t *testing.T, dsn, url string, args ...string) *process {
	t.Helper()
	p, err := launchRelay(t.TempDir(), os.Environ(), append([]string{"--store", dsn, "--to", "mail=" + url, "--lease", "1s"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	p.endWith(t)
	return p
}

// A relay that is killed between the effect and its record leaves the effect to another one, which repeats
// it under the same key.
func TestRelayIsKilled(t *testing.T) {
	t.Parallel()
	store, dsn := openOutbox(t)
	came, answer, gone := make(chan string), make(chan int), make(chan struct{}, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then the server notices that the relay is gone
		select {
		case came <- r.Header.Get("Idempotency-Key"): // the effect has happened
		case <-r.Context().Done():
		}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		case <-r.Context().Done():
			gone <- struct{}{}
		}
	}))
	defer receiver.Close()
	if err := enqueue(store, "mail", "evt_1"); err != nil {
		t.Fatal(err)
	}
	first := startRelay(t, dsn, receiver.URL)
	key := receive(t, came, first)
	if want := hookonce.EffectKey(hookonce.Ref{Source: "billing", Key: "evt_1"}, "mail"); key != want {
		t.Errorf("the key is %s, want %s", key, want)
	}
	if err := first.kill(); err != nil {
		t.Fatal(err)
	}
	receive(t, gone, first)
	second := startRelay(t, dsn, receiver.URL)
	if again := receive(t, came, second); again != key {
		t.Errorf("the key is %s, and was %s before", again, key)
	}
	answer <- http.StatusOK
	if err := second.end(syscall.SIGTERM); err != nil {
		t.Errorf("the relay ended with %v\n%s", err, second.log)
	}
	done, err := store.Effects(t.Context(), hookonce.StateDone, 0, 10)
	if err != nil || len(done) != 1 || done[0].Token < 2 {
		t.Errorf("effects that are done: %+v, %v\n%s", done, err, second.log)
	}
}

// SIGHUP has a relay read its secrets again, and harms nothing that is under way. What cannot be
// read changes nothing.
func TestSIGHUPRenewsARelaysSecrets(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	store, dsn := openOutbox(t)
	const old, renewed = "whsec_b2xkIHNlY3JldA==", "whsec_bmV3IHNlY3JldA=="
	came, answer := make(chan string), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		signed := "with nothing that is known"
		for name, secret := range map[string]string{"old": old, "new": renewed} {
			if _, err := provider.Standard(secret).Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()}); err == nil {
				signed = name
			}
		}
		select {
		case came <- signed:
		case <-r.Context().Done():
		}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	defer receiver.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	keep := func(text string) {
		t.Helper()
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep(old)
	relay := startRelay(t, dsn, receiver.URL, "--secret", "mail=file:"+secret, "--lease", "1m")
	posts := func(key, want string, during func()) {
		t.Helper()
		if err := enqueue(store, "mail", key); err != nil {
			t.Fatal(err)
		}
		if signed := receive(t, came, relay); signed != want {
			t.Errorf("%s is signed %s, want %s", key, signed, want)
		}
		during()
		answer <- struct{}{}
	}
	hangUp := func(log string) func() {
		return func() {
			t.Helper()
			if err := relay.signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			relay.awaitLog(t, log)
		}
	}
	posts("evt_1", "old", func() {
		keep(renewed)
		hangUp("the addresses and secrets were read again")()
	})
	posts("evt_2", "new", func() {
		if err := os.Remove(secret); err != nil {
			t.Fatal(err)
		}
		hangUp("could not be read again; those that it has stay")()
	})
	posts("evt_3", "new", func() {})
	if err := relay.end(syscall.SIGTERM); err != nil {
		t.Errorf("the relay ended with %v\n%s", err, relay.log)
	}
	done, err := store.Effects(t.Context(), hookonce.StateDone, 0, 10)
	if err != nil || len(done) != 3 {
		t.Fatalf("effects that are done: %+v, %v\n%s", done, err, relay.log)
	}
	for _, e := range done {
		if e.Token != 1 || e.Deaths != 0 {
			t.Errorf("%s took %d attempts, of which %d died\n%s", e.Key, e.Token, e.Deaths, relay.log)
		}
	}
	if text := relay.log.String(); strings.Contains(text, old) || strings.Contains(text, renewed) {
		t.Errorf("the log has a secret:\n%s", text)
	}
}

// receive waits for what a relay causes.
func receive[T any](t *testing.T, from <-chan T, p *process) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("nothing came\n%s", p.log)
	}
	return v
}

// However often relays are killed under load, every effect is carried out, under a key of its own that never
// changes.
func TestRelaysAreKilledUnderLoad(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	store, dsn := openOutbox(t)
	const effects, kills = 200, 4
	for i := range effects {
		if err := enqueue(store, "mail", fmt.Sprintf("evt_%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	service := &mailService{t: t, keys: map[string]string{}, events: map[string]string{}, every: effects / 10, some: make(chan struct{}, 2*effects)}
	receiver := httptest.NewServer(service)
	defer receiver.Close()
	start := func() *process {
		return startRelay(t, dsn, receiver.URL, "--first-wait", "10ms", "--max-wait", "10ms", "--attempts", "100")
	}
	last := start()
	for range kills {
		victim := last
		last = start()
		receive(t, service.some, last)
		if err := victim.kill(); err != nil {
			t.Error(err)
		}
	}
	var done []hookonce.QueuedEffect
	for deadline := time.Now().Add(patience); len(done) < effects && time.Now().Before(deadline); time.Sleep(look) {
		var err error
		if done, err = store.Effects(t.Context(), hookonce.StateDone, 0, 2*effects); err != nil {
			t.Fatal(err)
		}
	}
	if err := last.end(syscall.SIGTERM); err != nil {
		t.Errorf("the relay ended with %v\n%s", err, last.log)
	}
	if came := service.came(); len(done) != effects || came != effects {
		t.Errorf("%d effects are done, and %d came, of %d\n%s", len(done), came, effects, last.log)
	}
}

// mailService takes mails, fails at every fifth after it took it, and knows who came under which key.
type mailService struct {
	t     *testing.T
	every int           // so many requests
	some  chan struct{} // are told here

	mu           sync.Mutex
	requests     int
	keys, events map[string]string // by event, by key
}

// came returns how many different mails came.
func (s *mailService) came() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}

func (s *mailService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // from a relay that was killed
	}
	event, key := string(body), r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.keys[event]; ok && known != key {
		s.t.Errorf("%s came under %s and %s", event, known, key)
	}
	if known, ok := s.events[key]; ok && known != event {
		s.t.Errorf("%s and %s came under one key", event, known)
	}
	s.keys[event], s.events[key] = key, event
	if s.requests++; s.requests%s.every == 0 {
		select {
		case s.some <- struct{}{}:
		default: // nobody is to be killed any more
		}
	}
	if s.requests%5 == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
