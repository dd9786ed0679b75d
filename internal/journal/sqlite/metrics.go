package sqlite

import (
	"errors"
	"os"

	"github.com/prometheus/client_golang/prometheus"
)

// measure registers what there is to know of the file, if there is somebody who wants it.
func (s *Store) measure(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	gauges := []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hookonce_journal_log_bytes", Help: "Size of the write-ahead log beside a SQLite file. It grows while somebody reads an old state of the file.",
		}, func() float64 { return float64(s.logFile()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hookonce_journal_file_gone", Help: "1 if the SQLite file was deleted, moved or replaced while it was open: nothing is acknowledged until a restart.",
		}, func() float64 {
			if s.present() {
				return 0
			}
			return 1
		}),
	}
	var errs []error
	for _, g := range gauges {
		errs = append(errs, r.Register(g))
	}
	s.metrics = func() {
		for _, g := range gauges {
			r.Unregister(g)
		}
	}
	return errors.Join(errs...)
}

// logFile returns the size of the log's file, 0 if it is not there.
func (s *Store) logFile() int64 {
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}
