package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
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

	opSighted op = "sighted"
	opPauses  op = "pauses"
	opAnswers op = "answers"

	opReconcile op = "reconcile"
	opProvide   op = "provide"
)

var ops = []op{opAccept, opTake, opExtend, opFinish, opPurge, opDrop, opStats, opSighted, opPauses, opAnswers, opReconcile, opProvide}

// metrics are the journal's own; what happens to events is counted where it happens.
type metrics struct {
	calls     map[op]*callMetrics
	rows      *prometheus.GaugeVec
	cacheHits prometheus.Counter
	lost      prometheus.Counter
	stale     prometheus.Counter

	reconciled prometheus.Counter
	replayed   *prometheus.CounterVec
	*upkeepMetrics
}

// callMetrics follow one operation of the store.
type callMetrics struct {
	seconds, batch prometheus.Observer
	failed         prometheus.Counter

	mu   sync.Mutex
	down bool
}

func newMetrics(j *Engine) (*metrics, error) {
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
		cacheHits: counter("done_cache_hits_total", "Copies answered from the memory of finished keys."),
		lost:      counter("lost_leases_total", "Deliveries that somebody else took over while they were held here."),
		stale:     counter("stale_outcomes_total", "Outcomes that were not recorded because their token was not current."),

		reconciled: counter("reconciled_total", "Events delivered past the store that were recorded when it was back."),
		replayed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_journal_replayed_total", Help: "Deliveries that replays asked of this process began again, by whether they were done before.",
		}, []string{"forced"}),
		upkeepMetrics: newUpkeepMetrics(),
	}
	for _, o := range ops {
		m.calls[o] = &callMetrics{
			seconds: seconds.WithLabelValues(string(o)),
			batch:   batch.WithLabelValues(string(o)),
			failed:  failed.WithLabelValues(string(o)),
		}
	}
	all := append(gauges(j), seconds, batch, failed, m.rows, m.cacheHits, m.lost, m.stale, m.reconciled, m.replayed, j.sightings.dropped)
	return m, register(j.opt.Registerer, append(all, m.collectors()...))
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "hookonce_journal_" + name, Help: help})
}

// gauges read the journal whenever they are scraped.
func gauges(j *Engine) []prometheus.Collector {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hookonce_journal_" + name, Help: help}, read)
	}
	return []prometheus.Collector{
		gauge("queue_entries", "Entries that wait for their commit.", func() float64 {
			n, _ := j.queue.depth()
			return float64(n)
		}),
		gauge("queue_bytes", "Bytes of the entries that wait for their commit.", func() float64 {
			_, n := j.queue.depth()
			return float64(n)
		}),
		gauge("unrecorded", "Events delivered past the store that are on no record yet.", func() float64 { return float64(j.detours.count.Load()) }),
		gauge("held", "Deliveries leased to this process.", func() float64 { return float64(j.held.count()) }),
	}
}

func register(r prometheus.Registerer, collectors []prometheus.Collector) error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, c := range collectors {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// count sets the gauges that count rows.
func (m *metrics) count(s journal.Stats) {
	for _, state := range []journal.State{journal.Pending, journal.Processing, journal.Failed, journal.Dead} {
		m.rows.WithLabelValues("deliveries", string(state)).Set(float64(s.Open[state]))
	}
	m.rows.WithLabelValues("events", "").Set(float64(s.Events))
	for kind, n := range s.Rows {
		m.rows.WithLabelValues(string(kind), "").Set(float64(n))
	}
	m.bytes.Set(float64(s.Bytes))
}

// call runs one operation of the store under a deadline, measures it, and logs when the operation
// begins to fail and when it works again.
func (j *Engine) call(o op, timeout time.Duration, batch int, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(j.ctx, timeout)
	defer cancel()
	m, began := j.metrics.calls[o], time.Now()
	err := do(ctx)
	m.seconds.Observe(time.Since(began).Seconds())
	m.batch.Observe(float64(batch))
	if err != nil {
		m.failed.Inc()
	}
	m.mu.Lock()
	changed := m.down != (err != nil)
	m.down = err != nil
	m.mu.Unlock()
	switch {
	case changed && err != nil && o == opProvide: // a role may be meant not to
		j.opt.Logger.Warn("journal: no partitions can be made; what is stored goes to the default ones, and is deleted row by row", "error", err)
	case changed && err != nil:
		j.opt.Logger.Error("journal: the store fails", "op", string(o), "error", err)
	case changed:
		j.opt.Logger.Info("journal: the store works again", "op", string(o))
	}
	return err
}
