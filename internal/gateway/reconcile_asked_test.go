package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/internal/settings"
)

const operatorsToken, readersToken = "a-fake-token-for-operators-of-tests", "a-fake-token-for-readers-of-tests"

// startAsked starts a gateway on a file, one source of which can be compared when somebody asks.
func startAsked(t *testing.T, s config.Source) *Gateway {
	s.Reconcile = config.Reconcile{Token: settings.Literal(reconciletest.Token)}
	cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
	cfg.Sources = append(cfg.Sources, s)
	cfg.AdminTokens = []config.AdminToken{
		{Name: "ann", Token: settings.Literal(operatorsToken), Role: config.RoleOperator},
		{Name: "bob", Token: settings.Literal(readersToken), Role: config.RoleRead},
	}
	return start(t, cfg)
}

// foundOut is an answer to a comparison.
type foundOut struct {
	Report *reconcile.Report
	Error  string
}

// comparison is a request for the last hour of a source.
func comparison(token, source, action string) call {
	return call{method: http.MethodPost, path: "/api/v1/sources/" + source + "/reconcile", token: token,
		body: api.Comparison{Since: time.Now().Add(-time.Hour), Action: action}}
}

// compare expects a comparison that came to its end.
func (c call) compare(t *testing.T, g *Gateway) (found foundOut) {
	t.Helper()
	if res := c.do(t, g, &found); res.StatusCode != http.StatusOK || found.Report == nil || found.Error != "" {
		t.Fatalf("%s answered %d %+v", c.path, res.StatusCode, found)
	}
	return found
}

// auditsOf returns the audit log of comparisons, newest first.
func auditsOf(t *testing.T, g *Gateway) (all []string) {
	t.Helper()
	page, err := g.store.Audits(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range page {
		why, _, _ := strings.Cut(a.Reason, " since")
		all = append(all, fmt.Sprint(a.By, " ", a.Action, " ", a.Filter, " ", a.Count, ": ", why))
	}
	return all
}

// A gateway to which the file of the store belongs compares for operators, with its own token, and does what they want once. It takes
// no events from them. What is done is on record before.
func TestComparesWhenAsked(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	l, s := newLister(t, sink.URL)
	g := startAsked(t, s)
	l.make("evt_1", "evt_2")
	for name, refused := range map[string]struct {
		call
		status int
	}{
		"no right":        {comparison(readersToken, "billing", "ingest"), 403},
		"no token":        {comparison("", "billing", "report"), 401},
		"no such source":  {comparison(operatorsToken, "bling", "report"), 404},
		"no list":         {comparison(operatorsToken, "orders", "report"), 422},
		"no such action":  {comparison(operatorsToken, "billing", "delete"), 422},
		"events of hers":  {call{method: http.MethodPost, path: "/api/v1/sources/billing/reconcile", token: operatorsToken, body: map[string]any{"since": time.Now().Add(-time.Hour), "action": "ingest", "events": []string{"evt_9"}}}, 422},
		"the future":      {call{method: http.MethodPost, path: "/api/v1/sources/billing/reconcile", token: operatorsToken, body: api.Comparison{Since: time.Now().Add(time.Hour)}}, 422},
		"before all time": {call{method: http.MethodPost, path: "/api/v1/sources/billing/reconcile", token: operatorsToken, body: api.Comparison{}}, 422},
	} {
		var answer map[string]any
		if res := refused.do(t, g, &answer); res.StatusCode != refused.status {
			t.Errorf("%s: answered %d %v, want %d", name, res.StatusCode, answer, refused.status)
		}
	}
	if asked, on := l.Requests(), auditsOf(t, g); len(asked) > 0 || len(on) > 0 {
		t.Fatalf("the sender was asked %d times, and on record is %q", len(asked), on)
	}
	if r := comparison(operatorsToken, "billing", "").compare(t, g).Report; r.Missing != 2 || r.Stored != 0 || len(r.Events) != 2 {
		t.Errorf("a report is %+v", r)
	}
	if on := auditsOf(t, g); len(on) > 0 || sink.count() > 0 {
		t.Errorf("a report did something: %q", on)
	}
	for _, stored := range []int{2, 0} {
		if r := comparison(operatorsToken, "billing", "ingest").compare(t, g).Report; r.Missing != stored || r.Stored != stored {
			t.Errorf("want %d stored: %+v", stored, r)
		}
	}
	sink.awaitIDs(t, []string{"evt_1", "evt_2"})
	l.make("evt_3")
	if r := comparison(operatorsToken, "billing", "redeliver").compare(t, g).Report; r.Redelivered != 1 || !slices.Equal(l.Resent(), []string{"evt_3"}) {
		t.Errorf("sent again is %q: %+v", l.Resent(), r)
	}
	want := []string{
		"ann reconcile billing 1: never arrived: its sender was asked to send it again", "ann reconcile billing 0: asked for: what never arrived",
		"ann reconcile billing 0: asked for: what never arrived", "ann reconcile billing 2: never arrived: stored from its sender's list", "ann reconcile billing 0: asked for: what never arrived",
	}
	if on := auditsOf(t, g); !slices.Equal(on, want) {
		t.Errorf("on record is\n%q, want\n%q", on, want)
	}
	closeNow(t, g)
	sink.eachOnce(t, []string{"evt_1", "evt_2"})
}

// Nothing is done that the audit log does not have.
func TestComparesOnRecord(t *testing.T) {
	t.Parallel()
	l, s := newLister(t, "http://127.0.0.1:1/")
	g := startAsked(t, s)
	l.make("evt_1")
	db, err := g.store.Store.(*sqlite.Store).DB()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TRIGGER refuse BEFORE INSERT ON hookonce_audits BEGIN SELECT RAISE(ABORT, 'no'); END`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	comparison(operatorsToken, "billing", "ingest").answers(t, g, 503)
	comparison(operatorsToken, "billing", "redeliver").answers(t, g, 503)
	if len(l.Requests()) > 0 {
		t.Error("the sender was asked")
	}
	if r := comparison(operatorsToken, "billing", "report").compare(t, g).Report; r.Missing != 1 {
		t.Errorf("it found %+v", r)
	}
}

// One at a time compares a source. Who hangs up ends it, and so does the end of the gateway, which is told.
func TestComparesOneAtATime(t *testing.T) {
	t.Parallel()
	l, s := newLister(t, "http://127.0.0.1:1/")
	var slow atomic.Bool
	begun, ended := make(chan struct{}), make(chan struct{})
	l.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if !slow.Load() {
			return false
		}
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
		return true
	}
	g := startAsked(t, s)
	l.make("evt_1")
	slow.Store(true)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	answers := make(chan foundOut, 1)
	ask := func(ctx context.Context) {
		c := comparison(operatorsToken, "billing", "ingest")
		body, _ := json.Marshal(c.body)
		req, _ := http.NewRequestWithContext(ctx, c.method, "http://"+g.AdminAddr().String()+c.path, bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+operatorsToken)
		req.Header.Set("Content-Type", "application/json")
		var found foundOut
		if res, err := client(t).Do(req); err == nil {
			_ = json.NewDecoder(res.Body).Decode(&found)
			res.Body.Close()
		}
		answers <- found
	}
	await := func(c chan struct{}, what string) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(patience):
			t.Fatal(what)
		}
	}
	go ask(ctx)
	await(begun, "the sender was not asked")
	if busy := comparison(operatorsToken, "billing", "report").answers(t, g, 409); !strings.Contains(fmt.Sprint(busy["detail"]), "is being compared") {
		t.Errorf("a second one was answered %v", busy)
	}
	hangUp()
	await(ended, "it goes on although nobody waits for it")
	<-answers
	slow.Store(false)
	for late := time.Now().Add(patience); ; { // the mark is given back a moment later
		var found foundOut
		if res := comparison(operatorsToken, "billing", "report").do(t, g, &found); res.StatusCode == http.StatusOK {
			if found.Report.Missing != 1 {
				t.Errorf("what was broken off stored something: %+v", found.Report)
			}
			break
		}
		if time.Now().After(late) {
			t.Fatal("a run that was broken off keeps the source")
		}
	}
	slow.Store(true)
	go ask(t.Context())
	await(begun, "the sender was not asked again")
	closed := make(chan struct{})
	go func() { defer close(closed); closeNow(t, g) }()
	await(ended, "it goes on although the gateway stops")
	if found := <-answers; found.Report == nil || !strings.Contains(found.Error, ErrStopping.Error()) {
		t.Errorf("it was answered %+v", found)
	}
	await(closed, "the gateway does not stop")
}
