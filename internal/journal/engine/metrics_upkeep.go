package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// The tasks of upkeep, as metrics name them.
const (
	taskPurge      = "purge"
	taskPartitions = "partitions"
)

// upkeepMetrics follow how much the journal keeps, and what goes.
type upkeepMetrics struct {
	stored, storedBytes prometheus.Counter
	purged              map[journal.Kind]purgedCounter
	bytes               prometheus.Gauge
	lastCleanup         *prometheus.GaugeVec
	partitions          *prometheus.GaugeVec
	oldest, until       *prometheus.GaugeVec

	purgedVec *prometheus.CounterVec
	worked    worked
}

// purgedCounter counts rows that went, for the metrics and for the tallies.
type purgedCounter struct {
	metric prometheus.Counter
	tally  *tally.Counter
}

func (c purgedCounter) add(n int64) {
	c.metric.Add(float64(n))
	c.tally.Add(n)
}

func newUpkeepMetrics(t *tally.Registry) *upkeepMetrics {
	gauge := func(label, name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hookonce_journal_" + name, Help: help}, []string{label})
	}
	m := &upkeepMetrics{
		stored:      counter("stored_total", "Events that this process stored. Its growth over a day is that of the table."),
		storedBytes: counter("stored_bytes_total", "Bytes of the headers and bodies that this process stored."),
		purgedVec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hookonce_journal_purged_total", Help: "Rows that this process deleted because they were past their retention, by kind. Those of dropped partitions are estimates.",
		}, []string{"kind"}),
		purged: map[journal.Kind]purgedCounter{},
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hookonce_journal_bytes", Help: "Size of the journal's tables on the disk, indexes included.",
		}),
		lastCleanup: gauge("task", "last_cleanup_timestamp_seconds", "When this process last found nothing more to clean up: rows (purge) or partitions."),
		partitions:  gauge("table", "partitions", "Partitions of a table, the one that takes what no other is for apart."),
		oldest:      gauge("table", "partitions_from_timestamp_seconds", "Where the oldest partition of a table begins."),
		until:       gauge("table", "partitions_until_timestamp_seconds", "Where the last partition of a table ends. It should be days ahead."),
	}
	for _, k := range journal.Kinds() {
		m.purged[k] = purgedCounter{m.purgedVec.WithLabelValues(string(k)), t.Counter("", "", tally.Purged(string(k)))}
	}
	return m
}

func (m *upkeepMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.stored, m.storedBytes, m.purgedVec, m.bytes, m.lastCleanup, m.partitions, m.oldest, m.until}
}

// cleaned notes that a task found nothing more to do.
func (m *upkeepMetrics) cleaned(task string, now time.Time) {
	m.lastCleanup.WithLabelValues(task).Set(float64(now.Unix()))
	if task == taskPurge {
		m.worked.cleaned.Store(now.Unix())
	}
}

// divided notes how tables are divided.
func (m *upkeepMetrics) divided(all map[journal.Kind]journal.Division) {
	until, first := int64(0), true
	for kind, d := range all {
		table := string(kind)
		m.partitions.WithLabelValues(table).Set(float64(d.Partitions))
		if d.Partitions > 0 {
			m.oldest.WithLabelValues(table).Set(float64(d.From.Unix()))
			m.until.WithLabelValues(table).Set(float64(d.Until.Unix()))
			if end := d.Until.Unix(); first || end < until {
				until, first = end, false
			}
		}
	}
	m.worked.partitioned.Store(until)
}
