package pg_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// BenchmarkStore runs on a server that syncs to the disk, as in production.
func BenchmarkStore(b *testing.B) {
	cluster := pgtest.Start(b, pgtest.Options{Fsync: true})
	journaltest.Bench(b, func(b testing.TB) journal.Store {
		s := open(b, cluster.DSN(b), "")
		keep := journaltest.Retention()
		if _, err := s.EnsurePartitions(b.Context(), time.Now(), &keep); err != nil {
			b.Fatal(err)
		}
		return s
	})
}
