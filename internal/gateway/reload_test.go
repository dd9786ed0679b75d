package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
)

// edited is a gateway whose configuration a test changes.
type edited struct {
	*Gateway
	t    *testing.T
	next atomic.Pointer[config.Config]
	log  *logged
}

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // that something was written
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startEdited starts a gateway that is closed when the test ends.
func startEdited(t *testing.T, cfg *config.Config) *edited {
	t.Helper()
	return startEditedAt(t, cfg, nil)
}

// startEditedAt starts one with a clock; nil: that of the system.
func startEditedAt(t *testing.T, cfg *config.Config, now func() time.Time) *edited {
	t.Helper()
	e := &edited{t: t, log: &logged{more: make(chan struct{}, 1)}}
	level := new(slog.LevelVar)
	var err error
	e.Gateway, err = Start(t.Context(), cfg, Options{
		Load:   func() (*config.Config, error) { return e.next.Load(), nil },
		Level:  level,
		Logger: slog.New(slog.NewTextHandler(e.log, &slog.HandlerOptions{Level: level})),
		Now:    now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, e.Gateway) })
	if e.opening.cancel != nil { // one that observes begins before its store is there, as on a busy machine
		<-e.opening.done
	}
	return e
}

// awaitLog waits until the log has a text.
func (e *edited) awaitLog(text string) {
	e.t.Helper()
	for late := time.After(patience); !strings.Contains(e.log.String(), text); {
		select {
		case <-e.log.more:
		case <-late:
			e.t.Fatalf("the log does not say %q:\n%s", text, e.log)
		}
	}
}

// edit reloads with a copy of what runs, changed.
func (e *edited) edit(change func(*config.Config)) {
	e.t.Helper()
	e.next.Store(e.changed(change))
	if _, err := e.Reload(e.t.Context(), "test"); err != nil {
		e.t.Fatal(err)
	}
}

// changed returns a copy of the configuration that runs, changed.
func (e *edited) changed(change func(*config.Config)) *config.Config {
	cfg := *e.config()
	cfg.Sources = append([]config.Source(nil), cfg.Sources...)
	cfg.Destinations = append([]config.Destination(nil), cfg.Destinations...)
	change(&cfg)
	return &cfg
}

func literal(secrets ...string) (all []settings.Secret) {
	for _, s := range secrets {
		all = append(all, settings.Literal(s))
	}
	return all
}

// Case 6: while events pour in, the configuration changes again and again, in every way. Nothing is refused
// because of it, nothing lost and nothing doubled.
func TestReloadUnderLoad(t *testing.T) {
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := unhurried(configured(store, ""))
		cfg.Sources = []config.Source{source("orders", sink.URL), source("refunds", sink.URL)}
		other := source("other", sink.URL)
		e := startEdited(t, cfg)
		c := client(t)
		var senders sync.WaitGroup
		stop := make(chan struct{})
		var all []string
		sent := make([][]string, 8)
		for w := range sent {
			senders.Go(func() {
				s := cfg.Sources[w%2]
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					id := fmt.Sprintf("%c-%d", 'a'+w, n)
					if r, err := post(t, c, e.Gateway, s, event(id)); err != nil || r.status != http.StatusOK {
						t.Errorf("%s was answered %+v, %v", id, r, err)
						return
					}
					sent[w] = append(sent[w], id)
				}
			})
		}
		for n := range 20 {
			e.edit(func(cfg *config.Config) {
				cfg.Sources = append([]config.Source(nil), source("orders", sink.URL), source("refunds", sink.URL))
				cfg.Sources[0].Secrets = literal("secret-of-orders", fmt.Sprint("another-secret-", n))
				if n%2 == 0 {
					cfg.Sources = append(cfg.Sources, other)
				}
				cfg.Delivery.Concurrency = 1 + n%7
				cfg.Delivery.Timeout += time.Millisecond
				cfg.Retention.Bodies += time.Minute
			})
			if n%2 == 0 { // what comes answers at once
				id := fmt.Sprint("other-", n)
				if r, err := post(t, c, e.Gateway, other, event(id)); err != nil || r.status != http.StatusOK {
					t.Errorf("%s was answered %+v, %v", id, r, err)
				}
				all = append(all, id)
			}
			before := sink.count()
			sink.await(t, "deliveries between reloads", func() bool { return sink.total >= before+20 })
		}
		close(stop)
		senders.Wait()
		for _, ids := range sent {
			all = append(all, ids...)
		}
		sink.awaitIDs(t, all)
		sink.eachOnce(t, all)
	})
}

// What went to a destination that a reload removed is not made due by a replay that names none: nobody would deliver it.
func TestReplayAfterADestinationWasRemoved(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := configured(store, "")
		cfg.Sources = []config.Source{source("orders", sink.URL), source("refunds", sink.URL)}
		e, c := startEdited(t, cfg), client(t)
		for _, s := range cfg.Sources {
			insist(t, c, e.Gateway, s, event(s.Name))
		}
		awaitState(t, e.Gateway, "orders", "done")
		refund := func() map[string]any {
			return call{method: "GET", path: "/api/v1/events/refunds/refunds"}.answers(t, e.Gateway, 200)
		}
		for deadline := time.Now().Add(patience); refund()["state"] != "done"; <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it is %v", refund())
			}
		}
		e.edit(func(cfg *config.Config) { cfg.Sources = cfg.Sources[:1] })
		replay := call{method: "POST", path: "/api/v1/replay", body: map[string]any{"filter": map[string]any{}, "force": true, "reason": "once more"}}
		done := replay.answers(t, e.Gateway, 200)
		if done["deliveries"] != 1.0 || fmt.Sprint(done["nowhere"]) != "map[refunds:1]" {
			t.Errorf("replayed %v", done)
		}
		sink.await(t, "the forced delivery", func() bool { return sink.seen["orders"] == 2 })
		if now := refund(); now["state"] != "done" {
			t.Errorf("what nobody delivers is %v", now)
		}
	})
}

// Case 6: a secret is rotated without a restart: first both are accepted, then only the new one.
func TestReloadRotatesSecrets(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	e := startEdited(t, configured(sqliteStore(t), sink.URL))
	c := client(t)
	accepted := func(secret, id string) bool {
		s := source("orders", sink.URL)
		s.Secrets = literal(secret)
		r, err := post(t, c, e.Gateway, s, event(id))
		if err != nil || r.status != http.StatusOK && r.status != http.StatusUnauthorized {
			t.Fatalf("answered %+v, %v", r, err)
		}
		return r.status == http.StatusOK
	}
	for _, step := range []struct {
		secrets  []string
		old, new bool
		log      string
	}{
		{[]string{"secret-of-orders"}, true, false, "nothing has changed"},
		{[]string{"the-new-secret", "secret-of-orders"}, true, true, "source orders: secrets changed (1 → 2)"},
		{[]string{"the-new-secret"}, false, true, "source orders: secrets changed (2 → 1)"},
	} {
		e.edit(func(cfg *config.Config) { cfg.Sources[0].Secrets = literal(step.secrets...) })
		if was, is := accepted("secret-of-orders", "a"), accepted("the-new-secret", "b"); was != step.old || is != step.new {
			t.Errorf("with %q the old one is accepted: %v, the new one: %v", step.secrets, was, is)
		}
		if !strings.Contains(e.log.String(), step.log) {
			t.Errorf("the log does not say %q:\n%s", step.log, e.log)
		}
	}
	if text := e.log.String(); strings.Contains(text, "new-secret") || strings.Contains(text, "secret-of") {
		t.Errorf("a secret is in the log:\n%s", text)
	}
}

// A reload that failed says that nothing was changed, unless it had introduced a map of the cells, or may have.
func TestWhatAFailedReloadLeaves(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		ErrStopping: "nothing was changed",
		ErrNotOpen:  "nothing was changed",
		&cells.IntroducedError{Number: 2, Err: errors.New("the store is away")}:        "the rest of the configuration is not used; reload again",
		fmt.Errorf("wrapped: %w", &cells.IntroducedError{Number: 2, Err: ErrStopping}): "the rest of the configuration is not used; reload again",
	} {
		if said := refusal(err).Error(); !strings.HasSuffix(said, "; "+want) || !strings.Contains(said, err.Error()) {
			t.Errorf("of %v it says %q", err, said)
		}
	}
}

// Case 6: a file with several faults, and a setting that needs a restart, change nothing, and all that is wrong
// is said.
func TestReloadIsAllOrNothing(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "hookonce.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() (*config.Config, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return config.Load(config.Input{Path: "hookonce.yaml", Data: data, ReadFile: os.ReadFile})
	}
	const sources = `
sources:
  - name: orders
    provider: hmac
    secrets: ["secret-of-orders"]
    to: %s
  - name: added
    provider: hmac
    secrets: ["secret-of-added"]
`
	base := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: sqlite:" + filepath.Join(dir, "hookonce.db") + "\n"
	write(base + fmt.Sprintf(sources[:strings.Index(sources, "  - name: added")], sink.URL))
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	log := new(logged)
	g, err := Start(t.Context(), cfg, Options{Load: load, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	c := client(t)
	for _, tt := range []struct {
		name, file string
		says       []string
	}{
		{"faults", "colour: red\n" + base + "log: {level: loud}\n" + fmt.Sprintf(sources, sink.URL), []string{"hookonce.yaml:1:1: unknown key", "log.level"}},
		{"no YAML", base + "sources: [", []string{"hookonce.yaml:"}},
		{"no secret file", base + fmt.Sprintf(sources, sink.URL) + "    token: file:/does/not/exist\n", []string{"/does/not/exist"}},
		{"a restart", "queue: {events: 999}\n" + strings.Replace(base, "hookonce.db", "other.db", 1) + "log: {level: debug}\n" + fmt.Sprintf(sources, sink.URL),
			[]string{"needs a restart: store, queue.events; nothing was changed"}},
		{"no file", "", []string{"no such file"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(tt.file)
			if tt.file == "" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			changed, err := g.Reload(t.Context(), "test")
			if err == nil || len(changed) != 0 {
				t.Fatalf("changed %q, %v", changed, err)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) || !strings.Contains(log.String(), want) {
					t.Errorf("neither error nor log may leave out %q:\n%v\n%s", want, err, log)
				}
			}
			if r, err := postSigned(c, g, "added", http.Header{}, event("a")); err != nil || r.status != http.StatusNotFound {
				t.Errorf("the source that was to come was answered %+v, %v", r, err)
			}
			if r, err := post(t, c, g, source("orders", ""), event("a")); err != nil || r.status != http.StatusOK {
				t.Errorf("the source that runs was answered %+v, %v", r, err)
			}
		})
	}
	write(base + fmt.Sprintf(sources, sink.URL))
	changed, err := g.Reload(t.Context(), "test")
	if err != nil || len(changed) != 1 || changed[0] != "source added added" {
		t.Errorf("changed %q, %v", changed, err)
	}
}

// Case 6: what a file of a secret holds counts, as a mounted secret is replaced under its name.
func TestReloadReadsFilesAgain(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with := func(cfg *config.Config) {
		s, err := settings.Resolver{ReadFile: os.ReadFile}.Secret("file:" + file)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Sources[0].Secrets = []settings.Secret{s}
	}
	write("the first secret")
	cfg := configured(sqliteStore(t), sink.URL)
	with(cfg)
	e := startEdited(t, cfg)
	c := client(t)
	for i, text := range []string{"the first secret", "the second secret", "the third secret"} {
		write(text)
		e.edit(with)
		s := source("orders", "")
		s.Secrets = literal(text)
		if r, err := post(t, c, e.Gateway, s, event(fmt.Sprint(i))); err != nil || r.status != http.StatusOK {
			t.Errorf("%s: answered %+v, %v", text, r, err)
		}
	}
}

// Case 6: a source that goes answers 404 at once, and what is open of it waits; when it is there again it
// answers at once, and what waited is delivered, to where it delivers now.
func TestReloadRemovesAndAddsSources(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		broken, sink := newSink(t), newSink(t)
		broken.answer = func(string, int) int { return http.StatusInternalServerError }
		cfg := configured(store, broken.URL)
		cfg.Sources = append(cfg.Sources, source("stays", sink.URL))
		e := startEdited(t, cfg)
		c := client(t)
		open := ids("open", 20)
		for _, id := range open {
			insist(t, c, e.Gateway, cfg.Sources[0], event(id))
		}
		broken.await(t, "attempts", func() bool { return broken.total > 20 })
		e.edit(func(cfg *config.Config) { cfg.Sources = cfg.Sources[1:] })
		if r, err := post(t, c, e.Gateway, cfg.Sources[0], event("late")); err != nil || r.status != http.StatusNotFound {
			t.Errorf("a source that is gone answered %+v, %v", r, err)
		}
		insist(t, c, e.Gateway, source("stays", ""), event("meanwhile"))
		sink.awaitIDs(t, []string{"meanwhile"})
		before := broken.count()
		e.edit(func(cfg *config.Config) { cfg.Sources = append(cfg.Sources, source("orders", sink.URL)) })
		insist(t, c, e.Gateway, cfg.Sources[0], event("late"))
		sink.awaitIDs(t, append(open, "late"))
		sink.eachOnce(t, append(open, "late", "meanwhile"))
		if after := broken.count(); after > before+64 { // those that were under way
			t.Errorf("%d attempts at a destination that is gone", after-before)
		}
	})
}

// Case 6: work that was held for a destination which is gone is delivered by another gateway that knows it,
// without waiting for a lease.
func TestReloadHandsHeldWorkBack(t *testing.T) {
	t.Parallel()
	store := postgresStore(t)
	stuck, sink := newSink(t), newSink(t)
	release := make(chan struct{})
	defer close(release)
	stuck.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })
	cfg := configured(store, stuck.URL)
	cfg.Delivery.Concurrency, cfg.Delivery.Lease = 1, time.Hour
	e := startEdited(t, cfg)
	c := client(t)
	all := ids("a", 21)
	for _, id := range all {
		insist(t, c, e.Gateway, cfg.Sources[0], event(id))
	}
	e.edit(func(cfg *config.Config) { cfg.Sources = []config.Source{source("other", "")} })
	start(t, configured(store, sink.URL))
	sink.await(t, "all but the one under way", func() bool { return sink.total == len(all)-1 })
}

// Case 6: tokens, the level of the log and trusted proxies follow, and a token that is gone opens nothing.
func TestReloadTokensLevelAndProxies(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	e := startEdited(t, configured(sqliteStore(t), sink.URL))
	c := client(t)
	status := func(token string) int {
		req, err := http.NewRequest(http.MethodGet, "http://"+e.AdminAddr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	token := func(name, secret string) config.AdminToken {
		return config.AdminToken{Name: name, Role: config.RoleRead, Token: settings.Literal(secret)}
	}
	for _, step := range []struct {
		tokens              []config.AdminToken
		none, first, second int
	}{
		{nil, 200, 200, 200},
		{[]config.AdminToken{token("ada", "the-first-token")}, 401, 200, 401},
		{[]config.AdminToken{token("ada", "the-second-token")}, 401, 401, 200},
		{nil, 200, 200, 200},
	} {
		e.edit(func(cfg *config.Config) { cfg.AdminTokens = step.tokens })
		if a, b, c := status(""), status("the-first-token"), status("the-second-token"); a != step.none || b != step.first || c != step.second {
			t.Errorf("with %d tokens the answers are %d, %d and %d", len(step.tokens), a, b, c)
		}
	}

	e.edit(func(cfg *config.Config) {
		cfg.LogLevel = slog.LevelDebug
		cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		cfg.Sources[0].Allow = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	})
	if !e.opt.Logger.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("the level of the log did not follow")
	}
	s := source("orders", "")
	for from, want := range map[string]int{"192.0.2.7": http.StatusUnauthorized, "198.51.100.7": http.StatusServiceUnavailable} {
		if r, err := postSigned(c, e.Gateway, s.Name, http.Header{"X-Forwarded-For": {from}}, event("a")); err != nil || r.status != want {
			t.Errorf("from %s: answered %+v, %v; want %d", from, r, err, want)
		}
	}
	if res, body := get(t, c, e.Gateway, "/api/v1/sources"); res.StatusCode != http.StatusOK || !strings.Contains(body, `"orders"`) {
		t.Errorf("sources: %s", body)
	}
}

// Case 6: services with an Idempotency-Key come, change and go without a restart, and remember what they did.
func TestReloadServices(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink, shop := newSink(t), newShop(t)
		e := startEdited(t, configured(store, sink.URL))
		c := client(t)
		service := guarded(store, shop.URL).Sources[0]
		with := func(change func(*config.Source)) func(cfg *config.Config) {
			return func(cfg *config.Config) {
				s := service
				change(&s)
				cfg.Sources = []config.Source{source("orders", sink.URL), s}
			}
		}
		e.edit(with(func(*config.Source) {}))
		mustCharge(t, c, e.Gateway, "acme", "/", "k1", "10")
		e.edit(with(func(s *config.Source) { s.Idempotency.Wait = time.Second })) // another way of waiting: another store of claims
		if res, _ := mustCharge(t, c, e.Gateway, "acme", "/", "k1", "10"); res.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the answer was not remembered")
		}
		e.edit(func(cfg *config.Config) { cfg.Sources = []config.Source{source("orders", sink.URL)} })
		if res, _, err := charge(c, e.Gateway, "acme", "/", "k2", "10"); err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("a service that is gone answered %v, %v", res, err)
		}
		e.edit(with(func(s *config.Source) { s.Idempotency.OptionalKey = true }))
		mustCharge(t, c, e.Gateway, "acme", "/", "", "10")
		if res, _ := mustCharge(t, c, e.Gateway, "acme", "/", "k1", "10"); res.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the answer was not remembered while the service was away")
		}
		if n := shop.charges.Load(); n != 2 {
			t.Errorf("%d charges, want 2", n)
		}
	})
}

// Case 6: reloads wait for each other, and one at the same time as a stop does all or nothing.
func TestReloadsAtOnceAndDuringStop(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	e := startEdited(t, configured(sqliteStore(t), sink.URL))
	c := client(t)
	for n := range 20 {
		e.next.Store(e.changed(func(cfg *config.Config) {
			cfg.Sources = []config.Source{source("orders", sink.URL), source(fmt.Sprint("s", n), sink.URL)}
		}))
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := e.Reload(t.Context(), "test"); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		insist(t, c, e.Gateway, source(fmt.Sprint("s", n), ""), event(fmt.Sprint(n)))
		sink.awaitIDs(t, []string{fmt.Sprint(n)}) // the next reload takes its destination away
	}
	var reloads sync.WaitGroup
	for n := range 4 {
		reloads.Go(func() {
			for i := range 1000 {
				e.next.Store(e.changed(func(cfg *config.Config) { cfg.Delivery.Timeout = time.Duration(1+i*4+n) * time.Second }))
				if _, err := e.Reload(context.Background(), "test"); errors.Is(err, ErrStopping) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	closeNow(t, e.Gateway)
	reloads.Wait()
	if _, err := e.Reload(t.Context(), "test"); !errors.Is(err, ErrStopping) {
		t.Errorf("after the stop: %v", err)
	}
}

// What did not change keeps what it learned: a provider its sender's keys, a destination its connections.
func TestReloadKeepsWhatIsTheSame(t *testing.T) {
	t.Parallel()
	cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
	cfg.Sources = append(cfg.Sources, source("other", ""))
	before, err := wire(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := *cfg
	next.Sources = []config.Source{cfg.Sources[1], cfg.Sources[0]}
	next.Sources[0].Secrets = literal("another-secret")
	after, err := wire(&next, before)
	if err != nil {
		t.Fatal(err)
	}
	if after.ingest.Sources[1].Provider != before.ingest.Sources[0].Provider {
		t.Error("the provider of an unchanged source is another one")
	}
	if after.ingest.Sources[0].Provider == before.ingest.Sources[1].Provider {
		t.Error("the provider of a changed source is the old one")
	}
}

// What is known about the health of a destination hangs on its certificates being the same.
func TestReloadKeepsCertificates(t *testing.T) {
	t.Parallel()
	const file = `
log: {level: %s}
destinations: [{name: ledger, url: "https://ledger.internal/", tls: {server_name: %s}}]
sources:
  - {name: billing, provider: stripe, secrets: [whsec_fake], to: {url: "https://billing.internal/", tls: {server_name: %[2]s}}}
  - {name: sales, provider: stripe, secrets: [whsec_fake], routes: [{to: [ledger]}]}
`
	wired := func(level, name string, before *wiring) *wiring {
		p, err := wire(parsed(t, fmt.Sprintf(file, level, name)), before)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := wired("info", "ledger.example", nil)
	same, another := wired("debug", "ledger.example", before), wired("info", "ledger.example.org", before)
	for _, name := range []string{"ledger", "billing"} {
		tls := before.deliver.Destinations[name].TLS
		if tls == nil || same.deliver.Destinations[name].TLS != tls {
			t.Errorf("%s: after another log level its certificates count as others", name)
		}
		if another.deliver.Destinations[name].TLS == tls {
			t.Errorf("%s: another server_name changes nothing", name)
		}
	}
}

// Case 6: a stop begins with /readyz: for the delay, requests are served although it says 503.
func TestStopServesForTheDelay(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	cfg := configured(sqliteStore(t), sink.URL)
	cfg.ShutdownDelay, cfg.ShutdownTimeout = patience, 2*patience
	e := startEdited(t, cfg)
	c := client(t)
	if e.Hurry() {
		t.Error("there was a delay to end before the stop")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Wait(ctx) }()
	stop()
	for {
		if res, _ := get(t, c, e.Gateway, "/readyz"); res.StatusCode == http.StatusServiceUnavailable {
			break
		}
	}
	insist(t, c, e.Gateway, cfg.Sources[0], event("late"))
	sink.awaitIDs(t, []string{"late"})
	if _, err := e.Reload(t.Context(), "test"); !errors.Is(err, ErrStopping) {
		t.Errorf("a reload during the delay: %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("ended during the delay: %v", err)
	default:
	}
	for !e.Hurry() { // until the delay has begun
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := post(t, c, e.Gateway, cfg.Sources[0], event("too late")); err == nil {
		t.Error("a request was answered after the stop")
	}
}

// The delay ends by itself, and before its end when a listener fails.
func TestStopDelayEnds(t *testing.T) {
	cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
	cfg.ShutdownDelay = 50 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	stop()
	began := time.Now()
	if err := start(t, cfg).Wait(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < cfg.ShutdownDelay {
		t.Errorf("stopped after %v, before the delay was over", took)
	}
	cfg.ShutdownDelay, cfg.ShutdownTimeout = patience, 2*patience
	g := start(t, cfg)
	ended := make(chan error, 1)
	go func() { ended <- g.Wait(ctx) }()
	g.ingest.Listener.Close()
	if err := <-ended; err == nil {
		t.Error("a listener that failed was not told")
	}
}

// Case 6, and 4: an endpoint that is observed is switched by a reload, and back. What the application answered 500
// to while it was observed is new; a request that is under way is answered by the application.
func TestReloadSwitchesModes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSink(t)
		arrived, released := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(released) })
		t.Cleanup(release)
		app.answer = func(id string, times int) int {
			if id == "slow" && times == 1 {
				close(arrived)
				app.mu.Unlock()
				<-released
				app.mu.Lock()
			}
			if times == 1 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		e := startEdited(t, observed(store, app.URL))
		c := client(t)
		s := source("orders", "")
		if r, err := post(t, c, e.Gateway, s, event("a")); err != nil || r.status != http.StatusInternalServerError {
			t.Errorf("observed: answered %+v, %v", r, err)
		}
		slow := make(chan reply, 1)
		go func() {
			r, _ := post(t, c, e.Gateway, s, event("slow"))
			slow <- r
		}()
		<-arrived
		e.edit(func(cfg *config.Config) { cfg.Sources[0].Mode = config.Async })
		release()
		if r := <-slow; r.status != http.StatusInternalServerError {
			t.Errorf("under way: answered %+v", r)
		}
		for _, id := range []string{"a", "slow"} {
			if r := insist(t, c, e.Gateway, s, event(id)); r.verdict != "accepted" {
				t.Errorf("%s after the switch: %+v, want accepted", id, r)
			}
		}
		app.await(t, "both once more", func() bool { return app.seen["a"] == 2 && app.seen["slow"] == 2 })
		e.edit(func(cfg *config.Config) { cfg.Sources[0].Mode = config.Observe })
		if r, err := post(t, c, e.Gateway, s, event("a")); err != nil || r.status != http.StatusOK || r.verdict != "" {
			t.Errorf("observed again: answered %+v, %v", r, err)
		}
	})
}

// What a reload leaves behind does not add up, however often the configuration changes.
func TestReloadsLeaveNothingBehind(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink, shop := newSink(t), newShop(t)
		e := startEdited(t, observed(store, sink.URL))
		c := client(t)
		service := guarded(store, shop.URL).Sources[0]
		round := func(n int) {
			e.edit(func(cfg *config.Config) {
				s, seen, own := service, source("orders", sink.URL), source(fmt.Sprint("own-", n%3), sink.URL)
				s.Idempotency.Wait = time.Duration(n%2) * time.Second
				seen.Mode, seen.Secrets = config.Observe, literal(fmt.Sprint("another-secret-", n))
				cfg.Sources = []config.Source{seen, own, s}
			})
			mustCharge(t, c, e.Gateway, "acme", "/", fmt.Sprint("k", n), "10")
			e.edit(func(cfg *config.Config) { cfg.Sources = cfg.Sources[:1] })
		}
		for n := range 4 {
			round(n)
		}
		before := runtime.NumGoroutine()
		const rounds = 100
		for n := range rounds {
			round(4 + n)
		}
		if more := runtime.NumGoroutine() - before; more > rounds/4 {
			t.Errorf("%d goroutines more after %d rounds", more, rounds)
		}
		if n := len(e.observing.retired); n > 2 {
			t.Errorf("%d forwarders are kept for requests that have ended", n)
		}
	})
}
