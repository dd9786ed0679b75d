package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func TestNew_refusesBadOptions(t *testing.T) {
	for field, opt := range map[string]engine.Options{
		"MaxBatch":  {MaxBatch: -1},
		"HeldBytes": {HeldBytes: -1},
		"Lease":     {Lease: -time.Second},
		"retention": {Retention: &journal.Retention{Period: journal.Period{Bodies: -1}}},
	} {
		j, err := engine.New(journaltest.NewMemory(), journaltest.Options(opt))
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v, %v; want an error that names the field", field, j, err)
		}
	}
}

// Nothing has a default here: what is missing is named.
func TestNew_requiresItsOptions(t *testing.T) {
	_, err := engine.New(journaltest.NewMemory(), engine.Options{})
	for _, field := range []string{"MaxBatch", "QueueEntries", "QueueBytes", "MaxHeld", "HeldBytes", "Lease", "Poll", "Timeout", "Retention", "IDs", "Now", "Logger"} {
		if err == nil || !strings.Contains(err.Error(), "Options."+field+" ") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// A store that fails leaves nothing behind that a second try would find in its way.
func TestNew_failsWithTheStore(t *testing.T) {
	store := journaltest.NewFaulty(journaltest.NewMemory())
	opt := journaltest.Options(engine.Options{Registerer: prometheus.NewRegistry()})
	store.Fail(journaltest.OpOrphans, 1, journaltest.NotPersisted)
	if _, err := engine.New(store, opt); !errors.Is(err, journaltest.ErrInjected) {
		t.Errorf("got %v, want the store's error", err)
	}
	j, err := engine.New(store, opt)
	if err != nil {
		t.Fatalf("again: %v", err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNew_refusesToShareMetrics(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		opt := engine.Options{Registerer: prometheus.NewRegistry()}
		r.another(opt)
		if _, err := engine.New(r.store, journaltest.Options(opt)); !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			t.Errorf("got %v, want AlreadyRegisteredError", err)
		}
	})
}

func TestPing(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		if err := r.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		r.fault.Fail(journaltest.OpPing, 1, journaltest.NotPersisted)
		if err := r.Ping(t.Context()); !errors.Is(err, journaltest.ErrInjected) {
			t.Errorf("got %v, want the store's error", err)
		}
	})
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	run(t, engine.Options{Registerer: reg}, func(t *testing.T, r *rig) {
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Done, time.Time{})
		r.want(r.accept(entry("evt_1")), journal.Duplicate)
		r.want(r.accept(entry("evt_2")), journal.Accepted)
		w := r.receive()
		steal(r, w.Held)
		sleep(20 * time.Second)
		gate := r.fault.Block(journaltest.OpAccept)
		r.goAccept(&journal.Event{Source: "billing", Body: make([]byte, 100)})
		defer gate.Open()
		want := `
# HELP hookonce_journal_backlog Deliveries that are not done, by destination and state.
# TYPE hookonce_journal_backlog gauge
hookonce_journal_backlog{destination="app",state="processing"} 1
# HELP hookonce_journal_done_cache_hits_total Copies answered from the memory of finished keys.
# TYPE hookonce_journal_done_cache_hits_total counter
hookonce_journal_done_cache_hits_total 1
# HELP hookonce_journal_held Deliveries leased to this process.
# TYPE hookonce_journal_held gauge
hookonce_journal_held 1
# HELP hookonce_journal_lost_leases_total Deliveries that somebody else took over while they were held here.
# TYPE hookonce_journal_lost_leases_total counter
hookonce_journal_lost_leases_total 1
# HELP hookonce_journal_queue_bytes Bytes of the entries that wait for their commit.
# TYPE hookonce_journal_queue_bytes gauge
hookonce_journal_queue_bytes 100
# HELP hookonce_journal_queue_entries Entries that wait for their commit.
# TYPE hookonce_journal_queue_entries gauge
hookonce_journal_queue_entries 1
# HELP hookonce_journal_rows Rows in the journal: deliveries by state, events and other tables in total (estimates).
# TYPE hookonce_journal_rows gauge
hookonce_journal_rows{state="",table="events"} 2
hookonce_journal_rows{state="dead",table="deliveries"} 0
hookonce_journal_rows{state="failed",table="deliveries"} 0
hookonce_journal_rows{state="pending",table="deliveries"} 0
hookonce_journal_rows{state="processing",table="deliveries"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want),
			"hookonce_journal_backlog", "hookonce_journal_done_cache_hits_total", "hookonce_journal_held", "hookonce_journal_lost_leases_total",
			"hookonce_journal_queue_bytes", "hookonce_journal_queue_entries", "hookonce_journal_rows"); err != nil {
			t.Error(err)
		}
	})
}

// An outage is one line in the log when it begins and one when it ends, however long it lasts, and no
// log holds a body.
func TestLogs(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		r.fault.Fail(journaltest.OpTake, 100, journaltest.NotPersisted)
		r.want(r.accept(entry("evt_1")), journal.Accepted)
		r.finish(r.receive(), journal.Dead, time.Time{})
		sleep(5 * time.Minute)
		r.wantLog(1, "the store fails")
		r.wantLog(1, "the store works again")
		r.wantLog(0, `"id"`)
	})
}
