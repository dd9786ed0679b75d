package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

const (
	patience = time.Minute
	scrapes  = 15 // of each gateway, while something happens
)

// quiet are queries that have no answer here, by a part of them: they show what is above 0 alone, and nothing of the kind
// happens to the gateways of this test, which have no cells.
var quiet = []string{"hookonce_journal_failures_total", "hookonce_observed_unrecorded_total", "hookonce_cell_"}

// TestBoardHasAnswers: a Prometheus that scrapes two gateways under load, one on each store, answers every query of the
// board, and has something to show in each panel. What it scraped is as promtool wants metrics to be.
func TestBoardHasAnswers(t *testing.T) {
	if !*long {
		t.Skip("it takes long: make ops runs it")
	}
	promtool := program(t, "promtool")
	one := startLoaded(t, config.Store{Driver: config.SQLite, DSN: filepath.Join(t.TempDir(), "hookonce.db")})
	two := startLoaded(t, config.Store{Driver: config.Postgres, DSN: pgtest.DSN(t)})
	p := startPrometheus(t, one.AdminAddr().String(), two.AdminAddr().String())
	for round, deadline := 0, time.Now().Add(patience); !p.scraped(t, 2, scrapes); round++ {
		if time.Now().After(deadline) {
			t.Fatal("Prometheus does not scrape the gateways")
		}
		one.load(t, round)
		two.load(t, round)
	}
	for _, q := range queries(t) {
		n := p.ask(t, q)
		silent := false
		for _, part := range quiet {
			silent = silent || strings.Contains(q.expr, part)
		}
		if n == 0 && !silent {
			t.Errorf("%s: nothing answers %s", q.where, q.expr)
		}
	}
	for _, g := range []*loaded{one, two} {
		cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(get(t, "http://"+g.AdminAddr().String()+"/metrics"))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
	}
}

// loaded is a gateway with a source of each kind, and senders.
type loaded struct {
	*gateway.Gateway
	cfg *config.Config
}

func startLoaded(t *testing.T, store config.Store) *loaded {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/broken") {
			http.Error(w, "out of disk", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(app.Close)
	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Store = "127.0.0.1:0", "127.0.0.1:0", store
	cfg.Delivery.Attempts, cfg.Delivery.Backoff, cfg.Delivery.BackoffMax = 2, 20*time.Millisecond, 50*time.Millisecond
	for name, mode := range map[string]string{"orders": "", "broken": "", "paused": "", "legacy": config.Observe, "charges": config.Idempotent} {
		s := config.DefaultSource()
		s.Name, s.To = name, app.URL+"/"+name
		if mode != "" {
			s.Mode = mode
		}
		if mode != config.Idempotent {
			s.Provider, s.Secrets = "hmac", []settings.Secret{settings.Literal("secret-of-" + name)}
		}
		cfg.Sources = append(cfg.Sources, s)
	}
	g, err := gateway.Start(t.Context(), cfg, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	l := &loaded{g, cfg}
	l.do(t, "POST", "http://"+g.AdminAddr().String()+"/api/v1/destinations/paused/pause", http.Header{"Content-Type": {"application/json"}}, []byte(`{"reason":"test"}`))
	return l
}

// load sends an event to each source, copies, one with other content, one that is not authentic, and a request with a key.
func (l *loaded) load(t *testing.T, round int) {
	t.Helper()
	body := fmt.Appendf(nil, `{"id":"evt-%d","type":"order.paid"}`, round)
	for i := range l.cfg.Sources {
		s := &l.cfg.Sources[i]
		to := "http://" + l.Addr().String() + "/in/" + s.Name
		if s.Mode == config.Idempotent {
			l.do(t, "POST", to, http.Header{"Idempotency-Key": {fmt.Sprintf("%q", fmt.Sprint("key-", round))}}, body)
			l.do(t, "POST", to, nil, body)
			l.do(t, "POST", to+"/../up", http.Header{"Idempotency-Key": {`"up"`}}, body)
			continue
		}
		for _, content := range [][]byte{body, body, bytes.Replace(body, []byte("paid"), []byte("lost"), 1)} {
			l.do(t, "POST", to, signed(t, s, content), content)
		}
		l.do(t, "POST", to, http.Header{}, body)
	}
}

func signed(t *testing.T, s *config.Source, body []byte) http.Header {
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

func (l *loaded) do(t *testing.T, method, to string, h http.Header, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, to, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if h != nil {
		req.Header = h
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
}

// prometheus is a server of its own, whose address this is.
type prometheus string

func startPrometheus(t *testing.T, targets ...string) prometheus {
	t.Helper()
	binary := program(t, "prometheus")
	dir, port := t.TempDir(), 0
	port, err := throwaway.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: hookonce, static_configs: [{targets: %s}]}]
`, absolute, list))
	address := fmt.Sprintf("127.0.0.1:%d", port)
	var log bytes.Buffer
	cmd := exec.Command(binary, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return prometheus("http://" + address)
}

// answer is what Prometheus says to a query.
type answer struct {
	Status, Error string
	Data          struct {
		Result []struct {
			Value [2]any
		}
	}
}

func (p prometheus) query(expr string) (a answer, err error) {
	res, err := http.Get(string(p) + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	return a, json.NewDecoder(res.Body).Decode(&a)
}

// scraped reports whether so many gateways were scraped so many times. Prometheus may not listen yet.
func (p prometheus) scraped(t *testing.T, gateways, times int) bool {
	t.Helper()
	a, err := p.query(fmt.Sprintf("count_over_time(hookonce_build_info[5m]) >= %d", times))
	return err == nil && len(a.Data.Result) == gateways
}

// ask returns how many series answer a query of the board.
func (p prometheus) ask(t *testing.T, q query) int {
	t.Helper()
	a, err := p.query(q.expr)
	if err != nil || a.Status != "success" {
		t.Errorf("%s: %s: %v %s", q.where, q.expr, err, a.Error)
	}
	return len(a.Data.Result)
}

func get(t *testing.T, from string) string {
	t.Helper()
	res, err := http.Get(from)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", from, res.StatusCode, text, err)
	}
	return string(text)
}
