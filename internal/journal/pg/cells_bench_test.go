package pg_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// BenchmarkCellFence commits a record each, by so many gateways at once, in rounds that follow each other: without a map, and under
// one. It reports what a commit costs beside the records: multixacts, bytes of the log, and time (medians of the rounds).
//
//	go test ./internal/journal/pg -run '^$' -bench BenchmarkCellFence -benchtime 7x
func BenchmarkCellFence(b *testing.B) {
	for _, gateways := range []int{1, 8} {
		b.Run(fmt.Sprint(gateways), func(b *testing.B) {
			cluster := pgtest.Start(b, pgtest.Options{Fsync: true})
			var ids atomic.Int64
			type way struct {
				number int64
				stores []*pg.Store
				conn   *pgx.Conn
				costs  [3][]float64
			}
			var ways []*way
			for number := range int64(2) {
				dsn := cluster.DSN(b)
				w := &way{number: number}
				for range gateways {
					w.stores = append(w.stores, open(b, dsn, ""))
				}
				if number > 0 {
					mustRaise(b, w.stores[0], number)
				}
				var err error
				if w.conn, err = pgx.Connect(b.Context(), dsn); err != nil {
					b.Fatal(err)
				}
				defer w.conn.Close(context.Background())
				ways = append(ways, w)
			}
			const commits = 4000
			for range b.N {
				for _, w := range ways {
					before := spentOf(b, w.conn)
					began := time.Now()
					var group sync.WaitGroup
					for _, s := range w.stores {
						group.Go(func() {
							for range commits / gateways {
								id, now := ids.Add(1), time.Now()
								if _, err := s.Accept(context.Background(), []*journal.Record{placed(id, fmt.Sprint("evt_", id), w.number)}, now, now); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					group.Wait()
					took := time.Since(began)
					after := spentOf(b, w.conn)
					for i, n := range []float64{after[0] - before[0], after[1] - before[1], float64(took.Microseconds())} {
						w.costs[i] = append(w.costs[i], n/commits)
					}
				}
			}
			for _, w := range ways {
				for i, unit := range []string{"multixacts", "log-bytes", "µs"} {
					slices.Sort(w.costs[i])
					b.ReportMetric(w.costs[i][len(w.costs[i])/2], fmt.Sprintf("%s/commit-%s", unit, map[int64]string{0: "without", 1: "map"}[w.number]))
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// spentOf reads the next multixact of a server, and how long its log is.
func spentOf(b *testing.B, conn *pgx.Conn) (n [2]float64) {
	b.Helper()
	if _, err := conn.Exec(b.Context(), `CHECKPOINT`); err != nil {
		b.Fatal(err)
	}
	err := conn.QueryRow(b.Context(), `SELECT next_multixact_id::text::float, (pg_current_wal_lsn() - '0/0')::float FROM pg_control_checkpoint()`).Scan(&n[0], &n[1])
	if err != nil {
		b.Fatal(err)
	}
	return n
}
