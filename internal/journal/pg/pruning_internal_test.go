package pg

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/search"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// plan is a node of what the server says about a statement that it has carried out.
type plan struct {
	Relation string  `json:"Relation Name"`
	Loops    float64 `json:"Actual Loops"`
	Rows     float64 `json:"Actual Rows"`       // in each of them
	Blocks   float64 `json:"Shared Hit Blocks"` // of the cache that it looked at, with what is below it
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

// rows counts the rows that were read of tables whose names begin so.
func (p *plan) rows(tables ...string) (n float64) {
	if slices.ContainsFunc(tables, func(prefix string) bool { return strings.HasPrefix(p.Relation, prefix) }) {
		n = p.Rows * p.Loops
	}
	for i := range p.Plans {
		n += p.Plans[i].rows(tables...)
	}
	return n
}

// explain carries out a statement, takes it back, and returns the partitions that were looked into.
func explain(t *testing.T, s *Store, sql string, args ...any) (partitions []string) {
	t.Helper()
	p := carriedOut(t, s, sql, args...)
	tables := map[string]bool{}
	p.read(tables)
	for name := range tables {
		if strings.HasPrefix(name, "bodies_") || strings.HasPrefix(name, "attempts_") { // the whole table is not looked into
			partitions = append(partitions, name)
		}
	}
	return partitions
}

// carriedOut carries out a statement, takes it back, and returns how the server did it.
func carriedOut(t *testing.T, s *Store, sql string, args ...any) *plan {
	t.Helper()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	var text []byte
	args = append([]any{pgx.QueryExecModeExec}, args...)
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&text); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return &plans[0].Plan
}

// TestListReadsFewBodies: a page of a list, and a look at contents, read the bodies of their events and no others,
// however many there are.
func TestListReadsFewBodies(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const events = 30_000
	for _, text := range []string{
		`INSERT INTO hookonce.events (id, source, key, received_at) SELECT n, 'billing', n::text, now() FROM generate_series(1, $1::int) n`,
		`INSERT INTO hookonce.bodies (event_id, header, body) SELECT n, '', '' FROM generate_series(1, $1::int) n`,
	} {
		if _, err := s.pool.Exec(t.Context(), text, events); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, 200)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	list, _ := s.find(dialect.List(&journal.Filter{}, 0), len(ids))
	for name, p := range map[string]*plan{"a list": carriedOut(t, s, list), "contents": carriedOut(t, s, s.in(contentsSQL), ids)} {
		if n := p.rows("bodies", "kept_bodies"); n < float64(len(ids)) || n > 2*float64(len(ids)) {
			t.Errorf("%s of %d reads %v rows of bodies", name, len(ids), n)
		}
	}
}

// TestFewAmongManyAreFoundAtOnce: what looks for events with open deliveries, or with conflicts, reads about as many events as
// it returns, however many lie between them; also where nothing has the source that is asked for, as far as the statistics know.
func TestFewAmongManyAreFoundAtOnce(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{
		`INSERT INTO hookonce.events (id, source, key, received_at) SELECT n, 'billing', n::text, now() FROM generate_series(1, 30000) n`,
		`INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries, error_kind) SELECT n, 'app', 'dead', 1, 1, 'timeout'
			FROM generate_series(100, 30000, 100) n`,
		`INSERT INTO hookonce.sightings (event_id, kind, n, first_at, last_at, copies) SELECT n, 'conflict', 1, now(), now(), 1
			FROM generate_series(50, 30000, 100) n`,
		`ANALYZE`,
		`UPDATE hookonce.events SET source = 'young'`,
	} {
		if _, err := s.pool.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	const limit = 50
	for name, q := range map[string]*search.Search{
		"a list of what is dead":     dialect.List(&journal.Filter{State: journal.Dead}, 0),
		"a list by error":            dialect.List(&journal.Filter{Destination: "app", Error: "timeout"}, 0),
		"a list of conflicts":        dialect.List(&journal.Filter{Seen: journal.ReceiptConflict}, 0),
		"a list of a young source":   dialect.List(&journal.Filter{Source: "young", State: journal.Dead}, 0),
		"a replay of what is dead":   dialect.Replay(&journal.Replay{Filter: journal.Filter{State: journal.Dead}}),
		"a replay of a young source": dialect.Replay(&journal.Replay{Filter: journal.Filter{Source: "young"}}),
	} {
		query, args := s.find(q, limit)
		p := carriedOut(t, s, query, args...)
		if n := p.rows("events"); n < limit || n > 4*limit { // each is read once to be found and once more to be shown
			t.Errorf("%s of %d reads %v events", name, limit, n)
		}
	}
}

// TestKeysAreFoundInTheirIndex: what is asked of many keys reads the events that have them and no others, however many there
// are, and whatever the statistics say of the source.
func TestKeysAreFoundInTheirIndex(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{
		`INSERT INTO hookonce.events (id, source, key, received_at) SELECT n, 'billing', n::text, now() FROM generate_series(1, 30000) n`,
		`INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries) SELECT n, 'app', 'dead', 1, 1 FROM generate_series(1, 30000) n`,
		`ANALYZE`,
		`UPDATE hookonce.events SET source = 'young' WHERE id > 15000`,
	} {
		if _, err := s.pool.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	keys := make([]string, journal.MaxKnown)
	for i := range keys {
		keys[i] = strconv.Itoa(14_501 + i) // a half of each source
	}
	for _, source := range []string{"billing", "young", "nobody"} {
		p := carriedOut(t, s, s.in(knownSQL), source, keys)
		if n := p.rows("events", "deliveries"); n > journal.MaxKnown {
			t.Errorf("%d keys of %s read %v rows", len(keys), source, n)
		}
	}
	if known, err := s.Known(t.Context(), "young", keys); err != nil || len(known) != journal.MaxKnown/2 {
		t.Errorf("%d of %d are known, %v", len(known), journal.MaxKnown/2, err)
	}
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
		if _, err := s.EnsurePartitions(t.Context(), now.Add(time.Duration(3*i)*day), &keep); err != nil {
			t.Fatal(err)
		}
	}
	e := &journal.Record{ID: journal.NewIDs(1, 0).Next(now), Event: &journal.Event{
		Source: "billing", Key: "evt_1", Body: []byte("x"),
		Destinations: []string{"app"}, ReceivedAt: now,
	}}
	if _, err := s.Accept(t.Context(), []*journal.Record{e}, now, now); err != nil {
		t.Fatal(err)
	}
	ids := []int64{e.ID}
	list, _ := s.find(dialect.List(&journal.Filter{}, 0), 50)
	for name, tt := range map[string]struct {
		sql  string
		args []any
		want string
	}{
		"take": {s.sql.take, []any{now, now, "", int64(0), []string{"app"}, []int32{5}, []int64{0}, []bool{false}, 5}, "bodies_20260314"},
		"finish": {s.sql.finish, []any{[]int32{0}, ids, []string{"app"}, []int64{1}, []string{"done"}, []*time.Time{nil}, []int32{200}, []string{""},
			[]time.Time{now}, []int64{1}, [][]byte{nil}, []*string{nil}, []*int64{nil}, []*string{nil}, []*bool{nil}, []*string{nil}}, ""},
		"history":  {s.in(attemptsSQL), []any{e.ID, 10}, "attempts_20260314"},
		"size":     {s.in(sizeSQL), []any{e.ID}, "bodies_20260314"},
		"list":     {list, nil, "bodies_20260314"},
		"contents": {s.in(contentsSQL), []any{ids}, "bodies_20260314"},
		"finished": {s.in(finishedSQL), []any{ids}, "attempts_20260314"},
		"purge":    {`DELETE FROM hookonce.bodies WHERE event_id = ANY ($1::bigint[]) AND event_id BETWEEN $2 AND $3`, []any{ids, e.ID, e.ID}, "bodies_20260314"},
	} {
		got := explain(t, s, tt.sql, tt.args...)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s looks into %v, want %q alone", name, got, tt.want)
		}
	}
}

// filled returns a store in which the statements were carried out.
func filled(t *testing.T, statements ...string) *Store {
	t.Helper()
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, text := range statements {
		if _, err := s.pool.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestFailuresNobodyCountedAreFoundOneByOne: after an outage much fails that the statistics know nothing of. Who asks for it
// reads about as much as there is, and not all of it for each.
func TestFailuresNobodyCountedAreFoundOneByOne(t *testing.T) {
	t.Parallel()
	s := filled(t,
		`ALTER TABLE hookonce.deliveries SET (autovacuum_enabled = off)`,
		`INSERT INTO hookonce.events (id, source, key, received_at) SELECT n, 'billing', n::text, now() FROM generate_series(1, 30000) n`,
		`INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries) SELECT n, 'app', 'pending', 0, 0 FROM generate_series(1, 1000) n`,
		`INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries, error_kind, status)
			SELECT n, 'app', 'failed', 1, 1, 'status', 500 FROM generate_series(1001, 21000) n`,
	)
	const limit, blocks = 1000, 60 // for each that is found
	for name, f := range map[string]journal.Filter{
		"destination, error and status": {Destination: "app", Error: journal.ErrorStatus, Status: 500},
		"destination and status":        {Destination: "app", Status: 500},
		"destination":                   {Destination: "app", State: journal.Failed},
		"error":                         {Error: journal.ErrorStatus},
		"status":                        {Status: 500},
		"state":                         {State: journal.Failed},
	} {
		for what, q := range map[string]*search.Search{"a list": dialect.List(&f, 0), "a replay": dialect.Replay(&journal.Replay{Filter: f})} {
			query, args := s.find(q, limit)
			p := carriedOut(t, s, query, args...)
			if n := p.rows("events", "deliveries"); n < limit || p.Blocks > blocks*limit {
				t.Errorf("%s by %s of %d reads %v rows and looks at %v blocks", what, name, limit, n, p.Blocks)
			}
		}
	}
	n := make([]int, 250)
	sources, keys, none := make([]string, len(n)), make([]string, len(n)), make([]bool, len(n))
	for i := range n {
		n[i], sources[i], keys[i] = i, "billing", strconv.Itoa(25_000+i)
	}
	if p := carriedOut(t, s, s.in(copiesSQL), n, sources, keys, time.Now(), none, none); p.Blocks > blocks*float64(len(n)) {
		t.Errorf("%d copies look at %v blocks", len(n), p.Blocks)
	}
}

// TestAReplayReadsWhatItReplays: much fails after the statistics were made. A piece of a replay reads its own deliveries, and
// not all that failed.
func TestAReplayReadsWhatItReplays(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	s := filled(t,
		`ALTER TABLE hookonce.deliveries SET (autovacuum_enabled = off)`,
		`INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries) SELECT n, 'app', 'pending', 0, 0 FROM generate_series(1, 60000) n`,
		`ANALYZE hookonce.deliveries`,
		`UPDATE hookonce.deliveries SET state = 'failed', token = 1, tries = 1, error_kind = 'status', status = 500`,
	)
	again := make([]journal.Delivery, 500) // what the API replays at once
	for i := range again {
		again[i] = journal.Delivery{EventID: int64(5001 + i), Destination: "app", Due: time.Now()}
	}
	c := columnsOf(again)
	const reads = 3 // of each: it is found, found again, and written
	if p := carriedOut(t, s, s.in(replaySQL), c.event, c.destination, c.due, "status", 500, c.waitsSince); p.rows("deliveries") > float64(reads*len(again)) {
		t.Errorf("of %d deliveries that begin again %v rows are read, and %v blocks", len(again), p.rows("deliveries"), p.Blocks)
	}
}
