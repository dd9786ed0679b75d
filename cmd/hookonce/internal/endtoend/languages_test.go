package endtoend

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	examplesDir = "../../../../examples"

	billingSecret = "whsec_a-fake-secret-of-stripe"
	shopSecret    = "whsec_YSBmYWtlIHNlY3JldCBvZiB0aGUgc2hvcA=="
	nextSecret    = "whsec_YSBmYWtlIHNlY3JldCB0byByZXBsYWNlIGl0" // which the shop knows already
)

// TestExactlyOnceInEveryLanguage: the shop of examples/gateway books each payment once, whatever language it is written
// in. Stripe sends copies, the network delivers twice and loses answers, the database cuts connections, and the shop and the
// gateway are killed as kill -9 does. Claims and the gateway's record agree, and late events overwrite nothing. So it is with one of each
// language on one database, too, for which every event is under one name and guards agree.
func TestExactlyOnceInEveryLanguage(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	programs := map[string]func(t *testing.T) *exec.Cmd{
		"go": func(t *testing.T) *exec.Cmd {
			file := filepath.Join(t.TempDir(), "shop")
			mustRun(t, examplesDir, "go", "build", "-mod=mod", "-o", file, "./gateway")
			return exec.Command(file)
		},
		"node": func(t *testing.T) *exec.Cmd {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(examplesDir+"/gateway/node")); err != nil {
				t.Fatal(err)
			}
			mustRun(t, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
			return exec.Command("node", filepath.Join(dir, "shop.mjs"))
		},
		"python": func(*testing.T) *exec.Cmd {
			return exec.Command("/usr/bin/python3", examplesDir+"/gateway/python/shop.py")
		},
	}
	for language, program := range programs {
		t.Run(language, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			exactlyOnce(t, program(t))
		})
	}
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		exactlyOnce(t, programs["go"](t), programs["node"](t), programs["python"](t))
	})
}

// The events of the test: three states of each payment, and some events without an id, which nobody can recognise but
// by what the gateway calls them.
const (
	shopPayments = 20
	shopStates   = 3
	shopNamed    = shopPayments * shopStates
	shopNameless = 5
)

func exactlyOnce(t *testing.T, programs ...*exec.Cmd) {
	dsn := pgtest.DSN(t)
	mustRun(t, ".", "hookonce", "migrate", "--store", dsn)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	tables, err := os.ReadFile(examplesDir + "/gateway/shop.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), string(tables)); err != nil {
		t.Fatal(err)
	}
	var shops []*languageShop
	for _, program := range programs {
		program.Env = append(os.Environ(), "DATABASE_URL="+dsn, "SHOP_SECRET="+nextSecret+"  "+shopSecret+" ", "PORT=0", "PGAPPNAME=shop") // blanks as people leave them
		shop := &languageShop{program: program}
		shop.start(t)
		shops = append(shops, shop)
	}
	road := newRoad(t, shops)
	gateway := newLanguageGateway(t, road.URL+"/hooks", dsn)

	blocker, err := pool.Begin(t.Context())
	if err == nil {
		_, err = blocker.Exec(t.Context(), "LOCK TABLE payments")
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := range shopNameless {
		gateway.send(t, spec.Sample{Object: fmt.Sprint("pi_nameless_", n), Time: time.Now()})
	}
	for deadline := time.Now().Add(3 * time.Minute); terminate(t, pool, "wait_event_type = 'Lock'") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the shop does not wait for the table")
		}
	}
	if err := blocker.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	road.awaitTold(t, shopNameless)
	terminate(t, pool, "state = 'idle'")
	var senders sync.WaitGroup
	began := time.Now().Add(-time.Hour)
	for copies := range 3 {
		senders.Go(func() {
			for n := range shopNamed {
				i := (n*7 + copies*11) % (shopNamed) // in an order of its own
				gateway.send(t, spec.Sample{ID: fmt.Sprint("evt_", i), Object: fmt.Sprint("pi_", i%shopPayments), Time: began.Add(time.Duration(i/shopPayments) * time.Minute)})
			}
		})
	}
	road.awaitTold(t, shopNameless+shopNamed/4)
	for _, shop := range shops {
		shop.kill()
		shop.start(t)
	}
	road.awaitTold(t, shopNameless+shopNamed/2)
	gateway.kill(t)
	senders.Wait()
	road.awaitTold(t, shopNameless+shopNamed)
	awaitNothingOpen(t, pool) // what the killed gateway was told and could not record is delivered again
	gateway.stop(t)

	check := func(what, query string, want int) {
		t.Helper()
		var n int
		if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d, %v; want %d", what, n, err, want)
		}
	}
	check("payments", "SELECT count(*) FROM payments", shopNameless+shopNamed)
	check("events", "SELECT count(DISTINCT (source, event_id)) FROM payments WHERE source = 'billing'", shopNameless+shopNamed)
	check("events with the provider's key", "SELECT count(DISTINCT event_id) FROM payments WHERE event_id ~ '^evt_[0-9]+$'", shopNamed)
	check("claims", "SELECT count(*) FROM hookonce.claims WHERE state = 'done' AND source = 'billing'", shopNameless+shopNamed)
	check("payments in their newest state", fmt.Sprintf("SELECT count(*) FROM states WHERE event_id IN (SELECT 'evt_' || n FROM generate_series(%d, %d) AS n)", shopPayments*(shopStates-1), shopNamed), shopPayments)
	for _, record := range []string{"claims", "events"} {
		var report struct {
			Doubled int
			Lost    struct{ Done, Count int }
		}
		out := mustRun(t, ".", "hookonce", "reconcile", "effects", "--store", dsn, "--table", "payments", "--event-column", "event_id", "--source-column", "source", "--lost="+record, "--json")
		want := map[string]int{"claims": shopNameless + shopNamed, "events": shopNamed}[record]
		if err := json.Unmarshal(out, &report); err != nil || report.Doubled != 0 || report.Lost.Count != 0 || report.Lost.Done != want {
			t.Errorf("reconcile of %s: %s, %v; want %d done", record, out, err, want)
		}
	}
	if road.lost.Load() == 0 {
		t.Error("no answer was lost")
	}
	road.forge(t)
	check("payments after a forgery", "SELECT count(*) FROM payments", shopNameless+shopNamed)
}

// terminate ends the connections of the shops of which that is true, as a failover does, and returns how many there were.
func terminate(t *testing.T, pool *pgxpool.Pool, which string) (n int) {
	t.Helper()
	err := pool.QueryRow(t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'shop' AND "+which).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mustRun runs a command that has to succeed, and returns what it wrote.
func mustRun(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // as `make build` compiles, so that Go compiles little for it
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s(run scripts/install-servers if %s is missing)", name, args[0], err, out, said.String(), name)
	}
	return out
}

// languageShop is one of the programs of examples/gateway.
type languageShop struct {
	program *exec.Cmd // to start
	running *exec.Cmd
	url     atomic.Pointer[string]
}

// start starts the program, which prints where it listens, and ends it with the test at the latest.
func (s *languageShop) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(s.program.Path, s.program.Args[1:]...)
	cmd.Env = s.program.Env
	log := new(transcript)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("%v (run scripts/install-servers)", err)
	}
	s.running = cmd
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", cmd.Path, log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not start: %v\n%s", cmd.Path, err, log)
	}
	url := strings.TrimSpace(line)
	s.url.Store(&url)
}

func (s *languageShop) kill() {
	_ = s.running.Process.Kill()
	_ = s.running.Wait() // it was killed, and says so
}

// road is the network between the gateway and the shops, which take turns: it delivers some requests twice at one moment, and loses the
// first answer of some.
type road struct {
	*httptest.Server
	shops  []*languageShop
	turn   atomic.Uint64
	client *http.Client
	lost   atomic.Int64

	mu       sync.Mutex
	more     chan struct{} // closed and replaced at every change
	answered map[string]int
	told     map[string]bool // the gateway knows of the success
	captured *http.Request   // a delivery, with its body in GetBody
}

func newRoad(t *testing.T, shops []*languageShop) *road {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	r := &road{shops: shops, client: &http.Client{Transport: transport, Timeout: patience}, more: make(chan struct{}), answered: map[string]int{}, told: map[string]bool{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *road) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	key := in.Header.Get("Idempotency-Key")
	chance := fnv.New32a()
	io.WriteString(chance, key)
	var copies sync.WaitGroup
	if chance.Sum32()%3 == 0 {
		copies.Go(func() { r.pass(in.Header, body) })
	}
	status := r.pass(in.Header, body)
	copies.Wait()
	r.mu.Lock()
	if status/100 == 2 {
		r.answered[key]++
	}
	lose := status/100 == 2 && r.answered[key] == 1 && chance.Sum32()%2 == 0
	if status/100 == 2 && !lose {
		r.told[key] = true
		r.captured = in.Clone(context.Background())
		r.captured.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		close(r.more)
		r.more = make(chan struct{})
	}
	r.mu.Unlock()
	if lose {
		r.lost.Add(1)
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
}

// pass hands a delivery to the next shop, and returns its answer; 502 if there is none.
func (r *road) pass(h http.Header, body []byte) int {
	shop := r.shops[r.turn.Add(1)%uint64(len(r.shops))]
	req, err := http.NewRequest(http.MethodPost, *shop.url.Load()+"/hooks", bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway
	}
	req.Header = h.Clone()
	res, err := r.client.Do(req)
	if err != nil {
		return http.StatusBadGateway
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// awaitTold waits until the gateway knows of so many events that they are done.
func (r *road) awaitTold(t *testing.T, n int) {
	t.Helper()
	for timeout := time.After(2 * patience); ; {
		r.mu.Lock()
		told, more := len(r.told), r.more
		r.mu.Unlock()
		if told >= n {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("%d of %d events were delivered", told, n)
		}
	}
}

// awaitNothingOpen waits until the journal has no delivery that is still to be made.
func awaitNothingOpen(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for timeout := time.After(2 * patience); ; {
		var open int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM hookonce.deliveries").Scan(&open); err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			return
		}
		select {
		case <-again.C:
		case <-timeout:
			t.Fatalf("%d deliveries are still to be made", open)
		}
	}
}

// forge sends a captured delivery again: as it was, which is a copy, and under another key, with its own signatures and
// with those of whoever knows no secret.
func (r *road) forge(t *testing.T) {
	t.Helper()
	stream, err := r.captured.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"": "", "Hookonce-Key": "evt_forged", "Hookonce-Source": "other", "Idempotency-Key": "billing:evt_forged", "Hookonce-Rank": "time:9000000000000000", "Hookonce-Signature": ""} {
		h, want := r.captured.Header.Clone(), http.StatusOK
		if name != "" {
			h.Set(name, value)
			want = http.StatusUnauthorized
		}
		if status := r.pass(h, body); status != want {
			t.Errorf("with %s: %q it is answered %d, want %d", name, value, status, want)
		}
	}
	empty := r.captured.Header.Clone()
	empty.Set("Hookonce-Key", "evt_forged")
	outgoing.Sign(empty, [][]byte{{}}, empty.Get("Webhook-Id"), time.Now(), body)
	if status := r.pass(empty, body); status != http.StatusUnauthorized {
		t.Errorf("signed with an empty secret it is answered %d", status)
	}
	if status := r.pass(r.captured.Header, append(body, ' ')); status != http.StatusUnauthorized {
		t.Errorf("with another body it is answered %d", status)
	}
}

// languageGateway is the gateway in front of the shop.
type languageGateway struct {
	dir    string
	args   []string
	p      *process
	addr   atomic.Pointer[string]
	signer *spec.Provider
	client *http.Client
}

func newLanguageGateway(t *testing.T, to, dsn string) *languageGateway {
	t.Helper()
	text, err := os.ReadFile(examplesDir + "/gateway/hookonce.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const own = "http://127.0.0.1:3000/hooks"
	if !bytes.Contains(text, []byte(own)) {
		t.Fatalf("the example does not deliver to %s", own)
	}
	g := &languageGateway{dir: t.TempDir(), signer: provider.Stripe(billingSecret)}
	if err := os.WriteFile(filepath.Join(g.dir, "hookonce.yaml"), bytes.ReplaceAll(text, []byte(own), []byte(to)), 0o600); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	g.client = &http.Client{Transport: transport, Timeout: patience}
	g.args = []string{"serve", "--config", "hookonce.yaml", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", dsn,
		"--delivery-backoff", "50ms", "--delivery-lease", "3s"}
	g.launch(t)
	return g
}

func (g *languageGateway) launch(t *testing.T) {
	t.Helper()
	p, err := launch(g.dir, append(os.Environ(), "STRIPE_WEBHOOK_SECRET="+billingSecret, "SHOP_SECRET="+shopSecret), g.args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway wrote:\n%s", p.log)
		}
	})
	p.endWith(t)
	g.p = p
	g.addr.Store(&p.addr)
}

// kill kills the gateway as kill -9 does, and starts it again.
func (g *languageGateway) kill(t *testing.T) {
	t.Helper()
	if err := g.p.kill(); err != nil {
		t.Fatal(err)
	}
	g.launch(t)
}

// stop stops it, with everything on record.
func (g *languageGateway) stop(t *testing.T) {
	t.Helper()
	if err := g.p.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// send sends an event until it is acknowledged, as Stripe does.
func (g *languageGateway) send(t *testing.T, of spec.Sample) {
	header, body := g.signer.Spec().Sample(of)
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(look) {
		signed := &hookonce.Request{Method: http.MethodPost, Header: header.Clone(), Body: body, Now: time.Now()}
		if err := g.signer.Sign(signed); err != nil {
			t.Error(err)
			return
		}
		req, err := http.NewRequest(http.MethodPost, "http://"+*g.addr.Load()+"/in/billing", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = signed.Header
		res, err := g.client.Do(req)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode/100 == 2 {
			return
		}
	}
	t.Errorf("%s was not acknowledged", of.ID)
}
