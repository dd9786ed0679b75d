package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// op names a call of the store in metrics and logs.
type op string

const (
	opAccept op = "accept"
	opTake   op = "take"
	opExtend op = "extend"
	opFinish op = "finish"
	opPurge  op = "purge"
	opDrop   op = "drop"
	opStats  op = "stats"

	opReceipts op = "receipts"
	opPauses   op = "pauses"
	opStatuses op = "statuses"

	opReconcile op = "reconcile"
	opEnsure    op = "ensure_partitions"
	opForget    op = "forget_tallies"
)

var ops = []op{opAccept, opTake, opExtend, opFinish, opPurge, opDrop, opStats, opReceipts, opPauses, opStatuses, opReconcile, opEnsure, opForget}

// metrics are the journal's own; what happens to events is counted where it happens.
type metrics struct {
	calls     map[op]*callMetrics
	rows      *prometheus.GaugeVec
	backlog   *backlogMetrics
	paused    *prometheus.GaugeVec
	cacheHits prometheus.Counter
	lost      prometheus.Counter
	stale     prometheus.Counter

	reconciled prometheus.Counter
	replayed   *prometheus.CounterVec
	dropped    prometheus.Counter // receipts

	seconds, batch *prometheus.HistogramVec
	failed         *prometheus.CounterVec
	*upkeepMetrics
}

// callMetrics follow one operation of the store.
type callMetrics struct {
	seconds, batch prometheus.Observer
	failed         prometheus.Counter

	mu   sync.Mutex
	down bool
}

func newMetrics(t *tally.Registry) *metrics {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hookonce_journal_commit_seconds", Help: "Time of one transaction of the store, by operation.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
	}, []string{"op"})
	batch := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hookonce_journal_batch_size", Help: "Entries, leases or outcomes in one transaction of the store.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 11),
	}, []string{"op"})
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hookonce_journal_failures_total", Help: "Calls of the store that failed, by operation.",
	}, []string{"op"})
	m := &metrics{
		calls: map[op]*callMetrics{},
		rows: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookonce_journal_rows", Help: "Rows in the journal: deliveries by state, events and other tables in total (estimates).",
		}, []string{"table", "state"}),
		backlog: newBacklogMetrics(),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hookonce_paused_timestamp_seconds", Help: "When an operator paused the destination; missing where none is paused.",
		}, []string{"destination"}),
		cacheHits: counter("done_cache_hits_total", "Copies answered from the memory of finished keys."),
		lost:      counter("lost_leases_total", "Deliveries that somebody else took over while they were held here."),
		stale:     counter("stale_outcomes_total", "Outcomes that were not recorded because their token was not current."),

		reconciled: counter("reconciled_total", "Events delivered past the store that were recorded when it was back."),
		replayed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_journal_replayed_total", Help: "Deliveries that replays asked of this process began again, by whether they were done before.",
		}, []string{"forced"}),
		dropped: counter("duplicate_receipts_dropped_total", "Copies that were recognised and answered, but too many to record."),
		seconds: seconds, batch: batch, failed: failed,
		upkeepMetrics: newUpkeepMetrics(t),
	}
	for _, forced := range []string{"true", "false"} {
		m.replayed.WithLabelValues(forced) // alerts see only what grows
	}
	for _, o := range ops {
		m.calls[o] = &callMetrics{
			seconds: seconds.WithLabelValues(string(o)),
			batch:   batch.WithLabelValues(string(o)),
			failed:  failed.WithLabelValues(string(o)),
		}
	}
	return m
}

// register registers the metrics, and gauges that read the engine's parts whenever they are scraped.
func (m *metrics) register(r prometheus.Registerer, e *Engine) error {
	if r == nil {
		return nil
	}
	gauge := func(name, help string, read func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hookonce_journal_" + name, Help: help}, func() float64 { return float64(read()) })
	}
	var errs []error
	for _, c := range append(m.collectors(), m.seconds, m.batch, m.failed, m.rows, m.backlog.open, m.backlog.oldest, m.paused, m.cacheHits, m.lost, m.stale, m.reconciled, m.replayed, m.dropped,
		gauge("queue_entries", "Entries that wait for their commit.", func() int64 { n, _ := e.queue.depth(); return int64(n) }),
		gauge("queue_bytes", "Bytes of the entries that wait for their commit.", func() int64 { _, n := e.queue.depth(); return n }),
		gauge("unrecorded", "Events delivered past the store that are on no record yet.", func() int64 { return int64(e.bypass.Unrecorded()) }),
		gauge("held", "Deliveries leased to this process.", func() int64 { return int64(e.inflight.Count()) }),
	) {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "hookonce_journal_" + name, Help: help})
}

// count sets the gauges that count rows.
func (m *metrics) count(s journal.Stats, now time.Time) {
	for _, state := range []journal.State{journal.Pending, journal.Processing, journal.Failed, journal.Dead} {
		m.rows.WithLabelValues("deliveries", string(state)).Set(float64(s.Open[state]))
	}
	m.backlog.set(s.Backlog, now)
	m.rows.WithLabelValues("events", "").Set(float64(s.Events))
	for kind, n := range s.Rows {
		m.rows.WithLabelValues(string(kind), "").Set(float64(n))
	}
	m.bytes.Set(float64(s.Bytes))
}

// pauses makes these the paused destinations, after others were.
func (m *metrics) pauses(all []journal.Pause, before map[string]bool) {
	there := map[string]bool{}
	for _, p := range all {
		there[p.Destination] = true
		m.paused.WithLabelValues(p.Destination).Set(float64(p.At.Unix()))
	}
	for destination := range before {
		if !there[destination] {
			m.paused.DeleteLabelValues(destination)
		}
	}
}

// backlogMetrics say what is open at each destination.
type backlogMetrics struct {
	open, oldest *prometheus.GaugeVec
	known        map[[2]string]bool // destinations and states that were among them once
}

func newBacklogMetrics() *backlogMetrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hookonce_journal_" + name, Help: help}, []string{"destination", "state"})
	}
	return &backlogMetrics{
		known:  map[[2]string]bool{},
		open:   gauge("backlog", "Deliveries that are not done, by destination and state."),
		oldest: gauge("backlog_oldest_timestamp_seconds", "Since when the one waits that waits longest: since its event was accepted or, if it was dead or done and is replayed, since it was due; missing where there is none."),
	}
}

// set makes these the counts. Of what is not among them any more there is none. What is put off has waited for no time yet: only
// a clock that was ahead is told by a time to come.
func (m *backlogMetrics) set(backlog []journal.OpenCount, now time.Time) {
	there := map[[2]string]bool{}
	for _, c := range backlog {
		at := [2]string{c.Destination, string(c.State)}
		there[at], m.known[at] = true, true
		m.open.WithLabelValues(at[:]...).Set(float64(c.Count))
		since := c.Since
		if since.After(now) {
			since = now
		}
		if c.Oldest.Sub(now) > journal.MuchAhead {
			since = c.Oldest
		}
		m.oldest.WithLabelValues(at[:]...).Set(float64(since.Unix()))
	}
	for at := range m.known {
		if !there[at] {
			m.open.WithLabelValues(at[:]...).Set(0)
			m.oldest.DeleteLabelValues(at[:]...)
		}
	}
}
