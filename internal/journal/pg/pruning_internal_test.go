package pg

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgtest"
)

// plan is a node of what the server says about a statement that it has carried out.
type plan struct {
	Relation string  `json:"Relation Name"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan  `json:"Plans"`
}

// read collects the tables that were looked into.
func (p *plan) read(into map[string]bool) {
	if p.Loops > 0 && p.Relation != "" {
		into[p.Relation] = true
	}
	for i := range p.Plans {
		p.Plans[i].read(into)
	}
}

// explain carries out a statement, takes it back, and returns the partitions that were looked into.
func explain(t *testing.T, s *Store, sql string, args ...any) (partitions []string) {
	t.Helper()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	var text []byte
	args = append([]any{pgx.QueryExecModeExec}, args...)
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+sql, args...).Scan(&text); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	tables := map[string]bool{}
	plans[0].Plan.read(tables)
	for name := range tables {
		if strings.HasPrefix(name, "bodies_") || strings.HasPrefix(name, "attempts_") { // the whole table is not looked into
			partitions = append(partitions, name)
		}
	}
	return partitions
}

// TestPruning: whatever is asked about one event looks into the one partition that it can be in, however many
// there are, and nothing scans them all.
func TestPruning(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	keep := journal.Retention{Period: journal.Period{Bodies: 7 * day, Attempts: 7 * day}}
	for i := range 5 {
		if _, err := s.Provide(t.Context(), now.Add(time.Duration(3*i)*day), &keep); err != nil {
			t.Fatal(err)
		}
	}
	e := &journal.Entry{ID: journal.NewIDs(1, 0).Next(now), Source: "billing", Key: "evt_1", Body: []byte("x"),
		Destinations: []string{"app"}, ReceivedAt: now}
	if _, err := s.Accept(t.Context(), []*journal.Entry{e}, now, now); err != nil {
		t.Fatal(err)
	}
	ids := []int64{e.ID}
	for name, tt := range map[string]struct {
		sql  string
		args []any
		want string
	}{
		"take": {s.sql.take, []any{now, now, "", int64(0), []string{"app"}, []int32{5}, []int64{0}, []bool{false}, 5}, "bodies_20260314"},
		"finish": {s.sql.finish, []any{[]int32{0}, ids, []string{"app"}, []int64{1}, []string{"done"}, []*time.Time{nil}, []int32{200}, []string{""},
			[]time.Time{now}, []int64{1}, [][]byte{nil}, []*string{nil}, []*int64{nil}}, ""},
		"history":  {s.in(attemptsSQL), []any{e.ID, 10}, "attempts_20260314"},
		"size":     {s.in(sizeSQL), []any{e.ID}, "bodies_20260314"},
		"finished": {s.in(finishedSQL), []any{ids}, "attempts_20260314"},
		"purge":    {`DELETE FROM hookonce.bodies WHERE event_id = ANY ($1::bigint[]) AND event_id BETWEEN $2 AND $3`, []any{ids, e.ID, e.ID}, "bodies_20260314"},
	} {
		got := explain(t, s, tt.sql, tt.args...)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s looks into %v, want %q alone", name, got, tt.want)
		}
	}
}
