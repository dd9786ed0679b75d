package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
)

const (
	listToken = "fake-token-of-the-list"

	reconcileConfig = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: "%s"
sources:
  - name: orders
    provider: custom
    secrets: [` + killSecret + `]
    to: "%s/app"
    reconcile: {token: "env:LIST_TOKEN", lag: 0s%s}
    spec:
      verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
      event: {key: [["json:$.id"]], type: ["json:$.type"], time: [{in: "json:$.at", unit: s}]}
      reconcile:
        servers: [{name: here, url: "%[2]s"}]
        list: {path: "/events?since={since}&until={until}", unit: s, items: $.data, sort: oldest, id: $.id,
          page: {kind: cursor, in: $.next, param: after}, event: {body: $}}
        redeliver: {path: "/events/{id}/again"}
        rate: {requests: 1000, per: 1s}
`
)

// forgetful is a sender that lists what it made, delivers it only when it is told to, and the app behind the gateway.
type forgetful struct {
	*httptest.Server
	t  *testing.T
	mu sync.Mutex

	made   []forgottenEvent
	booked map[string]int // by Idempotency-Key, how often it was begun: attempts after the first are not counted
	more   chan struct{}
	again  func(id string) // sends an event that it was asked to send again
}

type forgottenEvent struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	At   int64  `json:"at"`
}

func (e forgottenEvent) body() []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return text
}

func newForgetful(t *testing.T) *forgetful {
	f := &forgetful{t: t, booked: map[string]int{}, more: make(chan struct{}, 1)}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *forgetful) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/app" {
		f.mu.Lock()
		begun := 0
		if r.Header.Get("Hookonce-Attempt") == "1" { // a later one is that of a gateway that was killed, under the same key
			begun = 1
		}
		f.booked[r.Header.Get("Idempotency-Key")] += begun
		f.mu.Unlock()
		select {
		case f.more <- struct{}{}:
		default:
		}
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+listToken {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/events/"), "/again"); ok {
		f.mu.Lock()
		again := f.again
		f.mu.Unlock()
		again(id)
		return
	}
	f.list(w, r)
}

// list answers with pages of seven.
func (f *forgetful) list(w http.ResponseWriter, r *http.Request) {
	var since, until int64
	if _, err := fmt.Sscan(r.FormValue("since")+" "+r.FormValue("until"), &since, &until); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var page struct {
		Data []forgottenEvent `json:"data"`
		Next string           `json:"next,omitempty"`
	}
	page.Data = []forgottenEvent{}
	after := slices.IndexFunc(f.made, func(e forgottenEvent) bool { return e.ID == r.FormValue("after") })
	for _, e := range f.made[after+1:] {
		if e.At < since || e.At > until {
			continue
		}
		if len(page.Data) == 7 {
			page.Next = page.Data[6].ID
			break
		}
		page.Data = append(page.Data, e)
	}
	if err := json.NewEncoder(w).Encode(page); err != nil {
		f.t.Error(err)
	}
}

// make makes n events at a time, and returns them.
func (f *forgetful) make(n int, at time.Time) []forgottenEvent {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := len(f.made)
	for range n {
		f.made = append(f.made, forgottenEvent{fmt.Sprintf("evt_%d", len(f.made)), "order.paid", at.Unix()})
	}
	return slices.Clone(f.made[first:])
}

// deliver sends an event as a webhook, and wants that answer.
func (f *forgetful) deliver(g *process, e forgottenEvent, want int) {
	status, err := postTo(http.DefaultClient, provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}}), "http://"+g.addr+"/in/orders", e.body())
	if err != nil || status != want {
		f.t.Errorf("the webhook of %s was answered %d, %v", e.ID, status, err)
	}
}

// await waits until the app has so many events.
func (f *forgetful) await(n int) {
	f.t.Helper()
	for late := time.After(2 * patience); ; {
		f.mu.Lock()
		got := len(f.booked)
		f.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-f.more:
		case <-late:
			f.t.Fatalf("the app got %d events, and not %d", got, n)
		}
	}
}

// once wants the app to have every event that was made, each once.
func (f *forgetful) once() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.made {
		// A gateway that was killed may have begun what it did not come to send.
		if n, is := f.booked["orders:"+e.ID]; !is || n > 1 {
			f.t.Errorf("%s came: %t, and was begun %d times", e.ID, is, n)
		}
	}
	if len(f.booked) != len(f.made) {
		f.t.Errorf("the app has %d events of %d", len(f.booked), len(f.made))
	}
}

// configure writes the configuration; more is added to the source's block reconcile.
func (f *forgetful) configure(dsn, more string) (dir, file string) {
	dir = f.t.TempDir()
	file = filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, reconcileConfig, dsn, f.URL, more), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return dir, file
}

func (f *forgetful) launch(dir, file string) *process {
	f.t.Helper()
	p, err := launch(dir, append(os.Environ(), "LIST_TOKEN="+listToken), "serve", "--config", file)
	if err != nil {
		f.t.Fatal(err)
	}
	p.endWith(f.t)
	return p
}

// TestReconcileAfterAnHour: the gateway was down for an hour, by the clock of the sender, which gave up. The command finds what never
// arrived, stores a part of it from the list, and has the sender send the rest again. Webhooks that come late are duplicates, and
// each event takes effect once.
func TestReconcileAfterAnHour(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	f := newForgetful(t)
	dir, file := f.configure(pgtest.DSN(t), "")
	g := f.launch(dir, file)
	ago := time.Now().Add(-2 * time.Hour)
	for _, e := range f.make(10, ago) {
		f.deliver(g, e, http.StatusOK)
	}
	f.await(10)
	if err := g.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	lost := append(f.make(16, ago.Add(time.Minute)), f.make(14, ago.Add(time.Hour))...)

	env := append(os.Environ(), "LIST_TOKEN="+listToken)
	ask := func(want int, args ...string) string {
		t.Helper()
		status, out := command(env, append([]string{"reconcile", "--config", file, "--source", "orders", "--since", "3h"}, args...)...)
		if status != want {
			t.Errorf("reconcile %v exited %d, and not %d:\n%s", args, status, want, out)
		}
		return out
	}
	if out := ask(1); !strings.Contains(out, "missing      30") || !strings.Contains(out, lost[29].ID) {
		t.Errorf("with the gateway down it said\n%s", out)
	}
	f.await(10)
	// The first hour is stored while no gateway runs. Then one delivers it.
	if out := ask(0, "--ingest", "--until", ago.Add(30*time.Minute).UTC().Format(time.RFC3339)); !strings.Contains(out, "stored       16") {
		t.Errorf("it said\n%s", out)
	}
	g = f.launch(dir, file)
	f.await(26)
	f.mu.Lock()
	f.again = func(id string) {
		i := slices.IndexFunc(lost, func(e forgottenEvent) bool { return e.ID == id })
		f.deliver(g, lost[i], http.StatusOK)
	}
	f.mu.Unlock()
	if out := ask(0, "--redeliver"); !strings.Contains(out, "redelivered  14") {
		t.Errorf("it said\n%s", out)
	}
	f.await(40)
	if out := ask(0, "--ingest"); !strings.Contains(out, "on record    40") || !strings.Contains(out, "missing      0") {
		t.Errorf("once all is there it said\n%s", out)
	}
	for _, e := range lost {
		f.deliver(g, e, http.StatusOK) // late, with the content that was listed
	}
	if status, out := command(env, "events", "list", "--admin", "http://"+g.admin, "--seen", "conflict"); status != 0 || strings.Contains(out, "evt_") {
		t.Errorf("a late webhook was taken for a conflict:\n%s", out)
	}
	if err := g.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	f.once()
}

// begun has the source be compared from now on: gateways begin a minute after they started.
func begun(t *testing.T, dsn string) {
	if status, out := command(os.Environ(), "migrate", "--store", dsn); status != 0 {
		t.Fatal(out)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// Runs begin ten minutes before the mark.
	_, err = conn.Exec(t.Context(), `INSERT INTO hookonce.reconcile_marks (source, through, token, holder, ended_at) VALUES ('orders', now() + interval '10 minutes', 1, '', now())`)
	if err != nil {
		t.Fatal(err)
	}
}

// TestGatewaysReconcile has three gateways compare every second, and kills one after the other. Each event that never arrived is
// stored once, and what comes at the same moment as a webhook is one event.
func TestGatewaysReconcile(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	f := newForgetful(t)
	dsn := pgtest.DSN(t)
	dir, file := f.configure(dsn, ", every: 1s, action: ingest")
	begun(t, dsn)
	var gateways [3]*process
	for i := range gateways {
		gateways[i] = f.launch(dir, file)
	}
	total := 0
	for round := range 3 {
		<-time.After(2 * time.Second) // what is made from the next second on is compared
		made := f.make(20, time.Now())
		total += len(made)
		g := gateways[round]
		for i, e := range made {
			if i%4 == 0 {
				f.deliver(g, e, http.StatusOK)
			}
		}
		f.await(total)
		if round < 2 {
			if err := g.kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := gateways[2].end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	f.once()
}
