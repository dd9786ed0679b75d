package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testskip"
)

// shop is a service without any idea of idempotency: every request that reaches it is a charge.
type shop struct {
	*httptest.Server
	charges atomic.Int64
	// meanwhile, if set, is called with the number of the charge before the answer, and may give another.
	meanwhile func(w http.ResponseWriter, r *http.Request, n int64)
}

// errAnswered ends a request that meanwhile has answered.
var errAnswered = errors.New("answered")

func answer(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	io.WriteString(w, text)
	panic(errAnswered)
}

func newShop(t *testing.T) *shop {
	s := &shop{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil && p != errAnswered {
			panic(p)
		}
	}()
	if r.Method == http.MethodGet {
		fmt.Fprintf(w, "%d charges", s.charges.Load())
		return
	}
	n := s.charges.Add(1)
	body, _ := io.ReadAll(r.Body)
	if s.meanwhile != nil {
		s.meanwhile(w, r, n)
	}
	w.Header().Set("Set-Cookie", "session=fake")
	w.Header().Set("X-Path", r.URL.RequestURI())
	w.Header().Set("X-Key", r.Header.Get("Idempotency-Key"))
	w.Header().Set("X-Caller", r.Header.Get("Authorization"))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "charge %d of %s", n, body)
}

// guarded returns settings with one source in mode idempotency, called "charges".
func guarded(store config.Store, to string) *config.Config {
	cfg := configured(store, to)
	s := config.DefaultSource()
	s.Name, s.Mode, s.To = "charges", config.Idempotent, to
	s.Idempotency.Scope = []string{"header:Authorization"}
	cfg.Sources = []config.Source{s}
	return cfg
}

// charge sends one request through the gateway, for the caller called by.
func charge(c *http.Client, g *Gateway, by, path, key, body string) (*http.Response, string, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+g.Addr().String()+"/in/charges"+path, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if by != "" {
		req.Header.Set("Authorization", "Bearer fake-"+by)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

func mustCharge(t *testing.T, c *http.Client, g *Gateway, by, path, key, body string) (*http.Response, string) {
	t.Helper()
	res, text, err := charge(c, g, by, path, key, body)
	if err != nil {
		t.Fatal(err)
	}
	return res, text
}

// The path of the service is what it was configured to be: with a slash behind it many a service knows another one, or sends the
// client there by a redirect, past the gateway.
func TestIdempotencyAddsNoSlash(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	g, c := start(t, guarded(sqliteStore(t), shop.URL+"/v1/charges")), client(t)
	for i, path := range []string{"", "/", "?a=b", "/x"} {
		res, _ := mustCharge(t, c, g, "ada", path, fmt.Sprint("k", i), "10")
		if got := res.Header.Get("X-Path"); got != "/v1/charges"+path {
			t.Errorf("the service saw %s, want /v1/charges%s", got, path)
		}
	}
}

// An answer with a large header is one, whether or not it can be kept: the service is asked once.
func TestIdempotencyLargeHeader(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	shop.meanwhile = func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.Header().Set("X-Debug", strings.Repeat("x", 100<<10))
	}
	c := client(t)
	for limit, want := range map[int64]int{64 << 10: http.StatusInternalServerError, 256 << 10: http.StatusCreated} {
		cfg := guarded(sqliteStore(t), shop.URL)
		cfg.Sources[0].Idempotency.MaxAnswer = limit
		g := start(t, cfg)
		before := shop.charges.Load()
		for range 2 {
			if res, text := mustCharge(t, c, g, "ada", "", "k", "10"); res.StatusCode != want {
				t.Errorf("with up to %d bytes it is answered %d %.200s", limit, res.StatusCode, text)
			}
		}
		if n := shop.charges.Load() - before; n != 1 {
			t.Errorf("with up to %d bytes it was charged %d times", limit, n)
		}
	}
}

func TestIdempotencyInFrontOfAService(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		shop := newShop(t)
		g := start(t, guarded(store, shop.URL+"/v1"))
		c := client(t)
		first, text := mustCharge(t, c, g, "acme", "/charges?dry=a;b", `"k1"`, "10")
		if first.StatusCode != 201 || text != "charge 1 of 10" || first.Header.Get("X-Path") != "/v1/charges?dry=a;b" ||
			first.Header.Get("X-Key") != `"k1"` || first.Header.Get("X-Caller") != "Bearer fake-acme" || first.Header.Get("Set-Cookie") == "" {
			t.Errorf("the first was answered %d %s %v", first.StatusCode, text, first.Header)
		}
		again, text := mustCharge(t, c, g, "acme", "/charges?dry=a;b", "k1", "10")
		if again.StatusCode != 201 || text != "charge 1 of 10" || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("X-Path") != first.Header.Get("X-Path") || again.Header.Get("Set-Cookie") != "" {
			t.Errorf("the copy was answered %d %s %v", again.StatusCode, text, again.Header)
		}
		for _, refused := range []struct {
			by, path, key, body string
			status              int
		}{
			{"acme", "/charges?dry=a;b", "k1", "11", 422}, {"acme", "/refunds", "k1", "10", 422},
			{"acme", "/charges", "", "10", 400}, {"", "/charges", "k1", "10", 403}, {"acme", "/../admin", "k2", "10", 404}, {"acme", "/%2e%2e/admin", "k2", "10", 404},
		} {
			if res, text := mustCharge(t, c, g, refused.by, refused.path, refused.key, refused.body); res.StatusCode != refused.status || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%+v was answered %d %s", refused, res.StatusCode, text)
			}
		}
		if other, text := mustCharge(t, c, g, "globex", "/charges?dry=a;b", "k1", "10"); other.StatusCode != 201 || text != "charge 2 of 10" {
			t.Errorf("another caller was answered %d %s", other.StatusCode, text)
		}
		res, err := c.Get("http://" + g.Addr().String() + "/in/charges")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if text, _ := io.ReadAll(res.Body); string(text) != "2 charges" {
			t.Errorf("a GET was answered %d %s", res.StatusCode, text)
		}
		_, metrics := get(t, c, g, "/metrics")
		for _, line := range []string{`hookonce_idempotent_requests_total{source="charges",status="accepted"} 2`, `hookonce_idempotent_requests_total{source="charges",status="duplicate"} 1`,
			`hookonce_idempotent_requests_total{source="charges",status="conflict"} 2`, `hookonce_idempotent_rejected_total{reason="key_missing",source="charges"} 1`} {
			if !strings.Contains(metrics, line) {
				t.Errorf("the metrics lack %s", line)
			}
		}
	})
}

// Copies at once on two gateways: the service is asked once for each key, and all hear the same.
func TestIdempotencyCopiesAtOnceOnTwoGateways(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		shop := newShop(t)
		shop.meanwhile = func(http.ResponseWriter, *http.Request, int64) { time.Sleep(time.Millisecond) } // a service takes its time
		cfg := guarded(store, shop.URL)
		cfg.Sources[0].Idempotency.Wait = 20 * time.Second
		gateways := []*Gateway{start(t, cfg)}
		if store.Driver == config.Postgres {
			gateways = append(gateways, start(t, cfg))
		}
		c := client(t)
		const keys, copies = 20, 10
		var mu sync.Mutex
		heard := map[string]map[string]int{}
		var senders sync.WaitGroup
		for i := range keys * copies {
			senders.Go(func() {
				key := fmt.Sprint("k", i%keys)
				res, text, err := charge(c, gateways[i/keys%len(gateways)], "acme", "/charges", key, "10")
				if err != nil || res.StatusCode != 201 {
					t.Errorf("%s: %v %s, %v", key, res, text, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if heard[key] == nil {
					heard[key] = map[string]int{}
				}
				heard[key][text]++
			})
		}
		senders.Wait()
		for key, texts := range heard {
			if len(texts) != 1 {
				t.Errorf("%s: answers %v", key, texts)
			}
		}
		if n := shop.charges.Load(); n != keys {
			t.Errorf("%d charges, want %d", n, keys)
		}
	})
}

// By default a copy that comes meanwhile is told to come again.
func TestIdempotencyInProgress(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	shop.meanwhile = func(http.ResponseWriter, *http.Request, int64) { close(begun); <-finish }
	store := postgresStore(t)
	cfg := guarded(store, shop.URL)
	one, two := start(t, cfg), start(t, cfg)
	c := client(t)
	first := make(chan int, 1)
	go func() {
		res, _, err := charge(c, one, "acme", "/", "k1", "10")
		if err != nil {
			t.Error(err)
		}
		first <- res.StatusCode
	}()
	<-begun
	for _, g := range []*Gateway{one, two} {
		if res, text := mustCharge(t, c, g, "acme", "/", "k1", "10"); res.StatusCode != 409 || res.Header.Get("Retry-After") == "" {
			t.Errorf("answered %d %s", res.StatusCode, text)
		}
	}
	close(finish)
	if status := <-first; status != 201 {
		t.Errorf("the first was answered %d", status)
	}
}

// What the service does wrong, and what its client hears: nothing of it is kept, except where the effect
// may be there.
func TestIdempotencyServiceFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail   func(w http.ResponseWriter, r *http.Request, n int64)
		status int // 0: the connection is cut
		runs   int64
	}{
		"answers 500": {func(w http.ResponseWriter, r *http.Request, n int64) { answer(w, 500, "") }, 500, 2},
		"answers 401": {func(w http.ResponseWriter, r *http.Request, n int64) { answer(w, 401, "") }, 401, 2},
		"answers 402": {func(w http.ResponseWriter, r *http.Request, n int64) { answer(w, 402, "") }, 402, 1},
		"hangs up":    {func(w http.ResponseWriter, r *http.Request, n int64) { panic(http.ErrAbortHandler) }, 502, 2},
		"hangs":       {func(w http.ResponseWriter, r *http.Request, n int64) { <-r.Context().Done() }, 504, 2},
		"answers half": {func(w http.ResponseWriter, r *http.Request, n int64) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(201)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, 0, 2},
		"answers too much": {func(w http.ResponseWriter, r *http.Request, n int64) {
			answer(w, 201, strings.Repeat("x", 3000))
		}, 500, 1},
		"fails with too much": {func(w http.ResponseWriter, r *http.Request, n int64) {
			answer(w, 500, strings.Repeat("x", 3000))
		}, 503, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newShop(t)
			shop.meanwhile = func(w http.ResponseWriter, r *http.Request, n int64) {
				if n == 1 {
					c.fail(w, r, n)
				}
			}
			cfg := guarded(sqliteStore(t), shop.URL)
			cfg.Sources[0].Deadline = 25 * time.Second
			if c.status == 504 {
				cfg.Sources[0].Deadline = 2 * time.Second
			}
			cfg.Sources[0].Idempotency.MaxAnswer = 2000
			g := start(t, cfg)
			sender := client(t)
			res, text, err := charge(sender, g, "acme", "/", "k1", "10")
			if c.status == 504 { // from now on there is time enough, also on a busy machine
				closeNow(t, g)
				cfg.Sources[0].Deadline = 25 * time.Second
				g = start(t, cfg)
			}
			switch {
			case c.status == 0 && err == nil:
				t.Errorf("answered %d %s, want a cut connection", res.StatusCode, text)
			case c.status != 0 && (err != nil || res.StatusCode != c.status):
				t.Errorf("answered %v %s, %v; want %d", res, text, err, c.status)
			}
			res, text = mustCharge(t, sender, g, "acme", "/", "k1", "10")
			if want := max(c.status, 0); c.runs == 1 && (res.StatusCode != want || res.Header.Get("Idempotency-Replayed") != "true") || c.runs == 2 && res.StatusCode != 201 {
				t.Errorf("the copy was answered %d %s", res.StatusCode, text)
			}
			if n := shop.charges.Load(); n != c.runs {
				t.Errorf("the service was asked %d times, want %d", n, c.runs)
			}
		})
	}
}

// A service that is away is tried again by the next copy.
func TestIdempotencyServiceAway(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	g := start(t, guarded(sqliteStore(t), shop.URL))
	c := client(t)
	shop.Close()
	for range 2 {
		if res, text := mustCharge(t, c, g, "acme", "/", "k1", "10"); res.StatusCode != 502 || !strings.Contains(text, "service-unreachable") {
			t.Errorf("answered %d %s", res.StatusCode, text)
		}
	}
}

// A gateway that is stopped lets the requests under way end, and their answers are on record for the next.
func TestIdempotencyStop(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		shop := newShop(t)
		begun, finish := make(chan struct{}), make(chan struct{})
		shop.meanwhile = func(http.ResponseWriter, *http.Request, int64) { close(begun); <-finish }
		cfg := guarded(store, shop.URL)
		g := start(t, cfg)
		c := client(t)
		first := make(chan string, 1)
		go func() {
			_, text, err := charge(c, g, "acme", "/", "k1", "10")
			if err != nil {
				t.Error(err)
			}
			first <- text
		}()
		<-begun
		closed := make(chan struct{})
		go func() { closeNow(t, g); close(closed) }()
		for !g.stopping.Load() {
			runtime.Gosched()
		}
		close(finish)
		<-closed
		if text := <-first; text != "charge 1 of 10" {
			t.Errorf("answered %s", text)
		}
		if res, text := mustCharge(t, c, start(t, cfg), "acme", "/", "k1", "10"); text != "charge 1 of 10" || res.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("the copy was answered %d %s", res.StatusCode, text)
		}
	})
}

// A stop that does not wait for a service says that nobody knows what came of its requests, and how many they are.
func TestIdempotencyIsCutOff(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	t.Run("with a key", func(t *testing.T) { isCutOff(t, "k1") })
	t.Run("passed on", func(t *testing.T) { isCutOff(t, "") })
}

func isCutOff(t *testing.T, key string) {
	shop := newShop(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	shop.meanwhile = func(http.ResponseWriter, *http.Request, int64) { close(begun); <-finish }
	log := new(logged)
	cfg := guarded(sqliteStore(t), shop.URL)
	cfg.Sources[0].Idempotency.OptionalKey = true
	g, err := Start(t.Context(), cfg, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t)
	cut := make(chan error, 1)
	go func() {
		_, _, err := charge(c, g, "acme", "/", key, "10")
		cut <- err
	}()
	<-begun
	ended, end := context.WithCancel(t.Context())
	end()
	_ = g.Close(ended) // what else it did not wait for is not the matter
	close(finish)
	if err := <-cut; err == nil {
		t.Error("the client was answered")
	}
	if text := log.String(); !strings.Contains(text, "cut off while their service was at work") || !strings.Contains(text, "requests=1") || strings.Contains(text, "in doubt") {
		t.Errorf("the log says:\n%s", text)
	}
	for began := time.Now(); g.handler.Asking() != 0; runtime.Gosched() { // the connection is cut first
		if time.Since(began) > patience {
			t.Fatalf("when all is over services are asked for %d", g.handler.Asking())
		}
	}
}

// Limits of the source hold before anything reaches the service.
func TestIdempotencyLimits(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	cfg := guarded(sqliteStore(t), shop.URL)
	cfg.Sources[0].MaxBody, cfg.Sources[0].Rate, cfg.Sources[0].Burst = 4, 0.001, 2
	g := start(t, cfg)
	c := client(t)
	for i, want := range []int{413, 201, 503} {
		if res, text := mustCharge(t, c, g, "acme", "/", "k1", "123456"[:6-2*i]); res.StatusCode != want {
			t.Errorf("request %d was answered %d %s, want %d", i, res.StatusCode, text, want)
		}
	}
	if n := shop.charges.Load(); n != 1 {
		t.Errorf("%d charges", n)
	}
}

// Answers are forgotten when their time is over, and not those of other sources or of programs that share
// the database.
func TestIdempotencyPurge(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		shop := newShop(t)
		g := start(t, guarded(store, shop.URL))
		c := client(t)
		forget := func(source string, age time.Duration) {
			t.Helper()
			if err := g.kept.claims.Forget(t.Context(), source, time.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		mustCharge(t, c, g, "acme", "/", "k1", "10")
		forget("gateway:other", 0)
		forget("gateway:charges", time.Hour)
		if res, _ := mustCharge(t, c, g, "acme", "/", "k1", "10"); res.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("an answer was forgotten too early")
		}
		forget("gateway:charges", 0)
		if res, _ := mustCharge(t, c, g, "acme", "/", "k1", "10"); res.Header.Get("Idempotency-Replayed") != "" || shop.charges.Load() != 2 {
			t.Errorf("an answer was not forgotten; %d charges", shop.charges.Load())
		}
	})
}

// Strangers with a new key and a new caller for each request leave no row behind if the service turns them away, and no
// more than the bound if it answers them in another way; a caller whom it has let in gets through beside them, from
// the same proxy, and so does everybody from another address. What was left behind is purged.
func TestIdempotencyStrangersLeaveBoundedRows(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		shop := newShop(t)
		shop.meanwhile = func(w http.ResponseWriter, r *http.Request, _ int64) {
			if strings.HasSuffix(r.Header.Get("Authorization"), "-stranger") {
				status, _ := strconv.Atoi(r.Header.Get("X-Answer"))
				answer(w, status, "")
			}
		}
		const perHour = 20
		cfg := guarded(store, shop.URL)
		cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		cfg.Sources[0].Idempotency.NewKeys = perHour
		g := start(t, cfg)
		c := client(t)
		rows := func() (n int) {
			t.Helper()
			for _, kind := range []hookonce.PurgeKind{hookonce.PurgeEvents, hookonce.PurgeFailed} {
				some, err := g.kept.claims.ResponseStore.(hookonce.Purger).Purge(t.Context(), hookonce.PurgeRequest{
					Kind: kind, Source: "gateway:charges", Before: time.Now(), Limit: 1000, Dry: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				n += some
			}
			return n
		}
		from := func(address, by, key, status string) *http.Response {
			t.Helper()
			req, err := http.NewRequest(http.MethodPost, "http://"+g.Addr().String()+"/in/charges", strings.NewReader("10"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"X-Forwarded-For": {address}, "Authorization": {"Bearer fake-" + by}, "Idempotency-Key": {key}, "X-Answer": {status}}
			deadline := time.Now().Add(patience)
			for try := 0; ; try++ { // the store of a busy machine may take too long, and finish the call after its answer
				pause(try)
				req.Body, _ = req.GetBody()
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusConflict || time.Now().After(deadline) {
					return res
				}
			}
		}
		if res := from("192.0.2.1", "acme", "first", ""); res.StatusCode != 201 {
			t.Fatalf("answered %d", res.StatusCode)
		}
		genuine := 1
		attack := func(status string) (refused int) {
			for i := range 5 * perHour {
				if res := from("192.0.2.1", fmt.Sprintf("%s-%d-stranger", status, i), "k", status); res.StatusCode == http.StatusTooManyRequests {
					refused++
				}
				if i%5 == 0 {
					genuine++
					if res := from("192.0.2.1", "acme", fmt.Sprint("k-", status, i), ""); res.StatusCode != 201 {
						t.Errorf("beside strangers a caller who is known was answered %d", res.StatusCode)
					}
				}
			}
			return refused
		}
		for _, status := range []string{"401", "403", "407"} {
			if refused := attack(status); refused != 0 || rows() != genuine {
				t.Errorf("%s: %d rows, of which %d are genuine; %d were told to come again", status, rows(), genuine, refused)
			}
		}
		for i, status := range []string{"404", "500"} {
			if refused := attack(status); refused < (4+i)*perHour-1 || rows() > genuine+perHour+1 { // one comes back in three minutes
				t.Errorf("%s: %d rows, of which %d are genuine; %d were told to come again", status, rows(), genuine, refused)
			}
		}
		if res := from("192.0.2.2", "newcomer", "k", ""); res.StatusCode != 201 {
			t.Errorf("from another address a newcomer was answered %d", res.StatusCode)
		}
		_, metrics := get(t, c, g, "/metrics")
		if !strings.Contains(metrics, `hookonce_idempotent_rejected_total{reason="too_many_keys",source="charges"}`) {
			t.Error("the metrics do not tell of those who were told to come again")
		}
		if err := g.kept.claims.Forget(t.Context(), "gateway:charges", time.Now()); err != nil || rows() != 0 {
			t.Errorf("%d rows are left, %v", rows(), err)
		}
	})
}

// Nobody takes the tenant away from the service, whatever the mode of the connection; nor is hookonce impersonated.
func TestIdempotencyKeepsTheScope(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	var tenant, spoofed string
	shop.meanwhile = func(_ http.ResponseWriter, r *http.Request, _ int64) {
		tenant, spoofed = r.Header.Get("X-Tenant"), r.Header.Get("Hookonce-Event-Id")
	}
	cfg := guarded(sqliteStore(t), shop.URL)
	cfg.Sources[0].Idempotency.Scope = []string{"header:X-Tenant"}
	g := start(t, cfg)
	c := client(t)
	for connection, want := range map[string]int{"X-Tenant": 400, "close, x-tenant": 400, "x_tenant": 400, "keep-alive": 201} {
		req, err := http.NewRequest(http.MethodPost, "http://"+g.Addr().String()+"/in/charges", strings.NewReader("10"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Tenant": {"victim"}, "Idempotency-Key": {"k1"}, "Connection": {connection}, "Hookonce-Event-Id": {"evt"}}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("Connection: %s was answered %d", connection, res.StatusCode)
		}
	}
	if shop.charges.Load() != 1 || tenant != "victim" || spoofed != "" {
		t.Errorf("%d charges, for the tenant %q, with the event %q", shop.charges.Load(), tenant, spoofed)
	}
}

// Connections that announce requests and do not send them shut no service: 128 MiB would be announced by a tenth of these.
func TestAnnouncedRequestsShutNoService(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	g := start(t, guarded(sqliteStore(t), shop.URL))
	for i := range 1000 {
		conn, err := net.Dial("tcp", g.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "POST /in/charges HTTP/1.1\r\nHost: gw.test\r\nAuthorization: Bearer fake-stranger\r\nIdempotency-Key: k%d\r\nContent-Length: 1048576\r\n\r\n1", i); err != nil {
			t.Fatal(err)
		}
	}
	c := client(t)
	for i := range 20 {
		if res, text := mustCharge(t, c, g, "acme", "/charges", fmt.Sprint("k", i), "10"); res.StatusCode != 201 {
			t.Fatalf("answered %d %s", res.StatusCode, text)
		}
	}
}
