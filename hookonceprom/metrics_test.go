package hookonceprom_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookonceprom"
	"github.com/hookonce/hookonce/janitor"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/relay"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

var (
	stripe   = provider.Stripe("whsec_fake")
	happened = time.Now() // copies of an event are the same to the byte, whenever they are sent
)

// post sends an event to a handler and returns the status of the answer.
func post(h http.Handler, id, secret string) int {
	header, body := stripe.Spec().Sample(spec.Sample{ID: id, Type: "charge.succeeded", Time: happened})
	signed := hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: time.Now()}
	if err := provider.Stripe(secret).Sign(&signed); err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", strings.NewReader(string(body)))
	r.Header = signed.Header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// The two lines: metrics, and the option of each handler.
func ExampleNew() {
	registry := prometheus.NewRegistry() // in production: prometheus.DefaultRegisterer

	metrics := hookonceprom.New(registry)
	handler := hookonce.Webhook(memstore.New(), "billing", stripe, func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil },
		hookonce.WithObserver(metrics.Observe))

	post(handler, "evt_1", "whsec_fake")
	post(handler, "evt_1", "whsec_fake")
	count, _ := testutil.GatherAndCount(registry, "hookonce_handler_outcomes_total")
	fmt.Println(count, "outcomes: accepted and duplicate")
	// Output: 2 outcomes: accepted and duplicate
}

// A janitor tells the third of the three numbers.
func ExampleMetrics_ObservePurge() {
	store := memstore.New()
	metrics := hookonceprom.New(prometheus.NewRegistry())
	j := janitor.New(store, janitor.Retention{}, janitor.WithObserver(metrics.ObservePurge))
	fmt.Println(j.Sweep(context.Background()))
	// Output: <nil>
}

// A relay tells of every attempt at an effect.
func ExampleMetrics_ObserveEffect() {
	store, send := memstore.New(), relay.POST(nil, "https://crm.example/hooks")
	metrics := hookonceprom.New(prometheus.NewRegistry())
	worker := relay.New(store, map[string]relay.Handler{"crm.update": send}, relay.WithObserver(metrics.ObserveEffect))
	ctx, stop := context.WithCancel(context.Background())
	stop() // in production when the program ends
	fmt.Println(worker.Run(ctx))
	// Output: <nil>
}

// Attempts of a relay are counted, and those that gave an effect up are there from the first on.
func TestEffects(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := hookonceprom.New(registry)
	for _, o := range []relay.Observation{
		{Name: "mail", Status: relay.StatusDone}, {Name: "mail", Status: relay.StatusDone, Tries: 2},
		{Name: "crm", Status: relay.StatusFailed, Err: errors.New("503")}, {Name: "crm", Status: relay.StatusDead, Err: errors.New("410")},
	} {
		metrics.ObserveEffect(t.Context(), o)
	}
	want := `
# HELP hookonce_effect_attempts_total Attempts of a relay at effects, by what became of them: done, failed, dead, handed back, stale, unrecorded.
# TYPE hookonce_effect_attempts_total counter
hookonce_effect_attempts_total{name="crm",status="dead"} 1
hookonce_effect_attempts_total{name="crm",status="failed"} 1
hookonce_effect_attempts_total{name="mail",status="dead"} 0
hookonce_effect_attempts_total{name="mail",status="done"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hookonce_effect_attempts_total"); err != nil {
		t.Error(err)
	}
}

// What a handler on a real database does is counted: failures of first attempts apart from later ones.
func TestMetrics(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	metrics := hookonceprom.New(registry)
	fails := true
	h := hookonce.Webhook(sqlstore.New(db, sqlstore.SQLite), "billing", stripe, func(context.Context, *sql.Tx, *hookonce.Event) error {
		if fails {
			return errors.New("out of stock")
		}
		return nil
	}, hookonce.WithObserver(metrics.Observe), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
	post(h, "evt_1", "whsec_fake") // fails
	post(h, "evt_1", "whsec_fake") // and again, which is no first attempt
	fails = false
	post(h, "evt_1", "whsec_fake")
	post(h, "evt_1", "whsec_fake") // a duplicate
	post(h, "evt_2", "whsec_fake")
	if code := post(h, "evt_3", "whsec_forged"); code != http.StatusUnauthorized {
		t.Errorf("a forged event is answered %d", code)
	}
	metrics.ObservePurge(t.Context(), janitor.Observation{Kind: hookonce.PurgeEvents, Deleted: 3, Err: errors.New("locked")})
	want := `
# HELP hookonce_handler_first_attempt_failures_total First attempts that failed.
# TYPE hookonce_handler_first_attempt_failures_total counter
hookonce_handler_first_attempt_failures_total{source="billing"} 1
# HELP hookonce_handler_first_attempts_total Events of which the first attempt was made.
# TYPE hookonce_handler_first_attempts_total counter
hookonce_handler_first_attempts_total{source="billing"} 2
# HELP hookonce_handler_outcomes_total Events, and requests with a key, by what became of them: accepted, duplicate, conflict, unkeyed, busy, failed, dead.
# TYPE hookonce_handler_outcomes_total counter
hookonce_handler_outcomes_total{source="billing",status="accepted"} 2
hookonce_handler_outcomes_total{source="billing",status="duplicate"} 1
hookonce_handler_outcomes_total{source="billing",status="failed"} 2
# HELP hookonce_handler_rejected_total Requests that were rejected, by reason.
# TYPE hookonce_handler_rejected_total counter
hookonce_handler_rejected_total{reason="signature_mismatch",source="billing"} 1
# HELP hookonce_purge_failures_total Purges of the janitor that failed, by kind.
# TYPE hookonce_purge_failures_total counter
hookonce_purge_failures_total{kind="events"} 1
# HELP hookonce_purged_rows_total Rows that the janitor deleted, by kind.
# TYPE hookonce_purged_rows_total counter
hookonce_purged_rows_total{kind="events"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "hookonce_handler_first_attempt_failures_total", "hookonce_handler_first_attempts_total",
		"hookonce_handler_outcomes_total", "hookonce_handler_rejected_total", "hookonce_purge_failures_total", "hookonce_purged_rows_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
}
