package gateway

import (
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

// unready waits until /readyz says so.
func unready(t *testing.T, c *http.Client, g *Gateway) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		res, _ := get(t, c, g, "/readyz")
		if res.StatusCode == http.StatusServiceUnavailable {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz answers %d", res.StatusCode)
		}
	}
}

// The file is moved away while the gateway runs: nothing is acknowledged from the next request on, nor when the file is back;
// after a restart everything is there that was acknowledged, and everything that was not can be sent again.
func TestFileTakenAway(t *testing.T) {
	t.Parallel()
	app, store, c := newSink(t), sqliteStore(t), client(t)
	cfg := configured(store, app.URL)
	g := start(t, cfg)
	insist(t, c, g, cfg.Sources[0], event("before"))
	awaitRecord(t, g, "before")
	for deadline := time.Now().Add(patience); gauge(t, g, "hookonce_journal_held") > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what is on record is still held: the gateway was not told of it")
		}
	}
	if err := os.Rename(store.DSN, store.DSN+".away"); err != nil {
		t.Fatal(err)
	}
	refused := func(id string) {
		t.Helper()
		if r, err := post(t, c, g, cfg.Sources[0], event(id)); err != nil || r.status != http.StatusServiceUnavailable || r.retry == "" {
			t.Errorf("%s: %+v %v, want 503 with Retry-After", id, r, err)
		}
	}
	refused("while it is away")
	unready(t, c, g)
	if _, text := get(t, c, g, "/api/v1/overview"); !strings.Contains(text, `"gone":true`) {
		t.Errorf("how all stands does not say that the file is gone:\n%s", text)
	}
	if res, _ := get(t, c, g, "/healthz"); res.StatusCode != http.StatusOK {
		t.Errorf("/healthz answers %d: a supervisor would restart the process before somebody has looked", res.StatusCode)
	}
	if err := os.Rename(store.DSN+".away", store.DSN); err != nil {
		t.Fatal(err)
	}
	refused("when it is back")
	closeNow(t, g)
	g = start(t, cfg)
	if r := insist(t, c, g, cfg.Sources[0], event("before")); r.verdict != "duplicate" {
		t.Errorf("the event from before came again: %+v", r)
	}
	insist(t, c, g, cfg.Sources[0], event("when it is back"))
	app.awaitIDs(t, []string{"when it is back"})
}

// A service behind mode: idempotency gets no request whose claim would be gone after a restart.
func TestFileTakenAwayFromServices(t *testing.T) {
	t.Parallel()
	shop, store, c := newShop(t), sqliteStore(t), client(t)
	g := start(t, guarded(store, shop.URL))
	if res, text := mustCharge(t, c, g, "ada", "/", "one", "10"); res.StatusCode != http.StatusCreated {
		t.Fatalf("before: %d %s", res.StatusCode, text)
	}
	if err := os.Remove(store.DSN); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if res, text := mustCharge(t, c, g, "ada", "/", "two", "10"); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s, want 503 with Retry-After", res.StatusCode, text)
		}
	}
	if n := shop.charges.Load(); n != 1 {
		t.Errorf("the service was asked %d times", n)
	}
	unready(t, c, g)
}

// What is observed is not on record in a file that no restart would find, and the log says so; it is forwarded all the same.
func TestFileTakenAwayFromWhatIsObserved(t *testing.T) {
	t.Parallel()
	app, store, c := newSink(t), sqliteStore(t), client(t)
	cfg, log := observed(store, app.URL), new(logged)
	g, err := Start(t.Context(), cfg, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	send := func(id string) {
		t.Helper()
		if r, err := post(t, c, g, cfg.Sources[0], event(id)); err != nil || r.status != http.StatusOK {
			t.Fatalf("%s: %+v, %v", id, r, err)
		}
	}
	send("before")
	report(t, cfg, 1) // the connection is open
	if err := os.Rename(store.DSN, store.DSN+".away"); err != nil {
		t.Fatal(err)
	}
	send("while it is away")
	for deadline := time.Now().Add(patience); !strings.Contains(log.String(), "nothing can be recorded"); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is on record in the file that was taken away; the log says:\n%s", log.String())
		}
	}
}

// A file with two names is no reason to begin without the store: somebody has to correct it.
func TestUnsafeFileStopsTheStart(t *testing.T) {
	t.Parallel()
	app, store := newSink(t), sqliteStore(t)
	if err := os.WriteFile(store.DSN, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(store.DSN, store.DSN+".other"); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"", config.Observe} {
		cfg := configured(store, app.URL)
		cfg.Sources[0].Mode = mode
		g, err := Start(t.Context(), cfg, Options{})
		if err == nil {
			closeNow(t, g)
			t.Errorf("mode %q: started", mode)
		}
	}
	if _, _, err := Migrate(t.Context(), configured(store, app.URL)); err == nil {
		t.Error("migrated")
	}
}
