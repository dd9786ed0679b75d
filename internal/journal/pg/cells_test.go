package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

func cellMaps(numbers ...int64) (maps []journal.CellMap) {
	for _, n := range numbers {
		maps = append(maps, journal.CellMap{Number: n, Content: fmt.Sprint("map ", n), Since: time.UnixMicro(n * 1e6)})
	}
	return maps
}

func placed(id int64, key string, number int64) *journal.Record {
	return &journal.Record{ID: id, Event: &journal.Event{
		Source: "stripe", Key: key, Digest: []byte("d"), Destinations: []string{"app"}, ReceivedAt: time.Now(), CellMap: number,
	}}
}

func mustRaise(t testing.TB, s *pg.Store, numbers ...int64) {
	t.Helper()
	if err := s.RaiseCellMap(context.Background(), journal.CellRaise{Cell: "eu", Maps: cellMaps(numbers...)}); err != nil {
		t.Fatal(err)
	}
}

// TestCells holds the store to the contract of cells, in the modes that send most texts in other ways.
func TestCells(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			journaltest.RunCells(t, (&database{direct: dsn, dsn: queryMode(dsn, mode)}).fixture)
		})
	}
}

// The fence: when a map is stored, what was accepted before it can be read, and nothing more is accepted under the
// one before. Many accept without a pause, in several processes, and the map gets its turn all the same.
func TestNothingIsAcceptedUnderAnOldMap(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	const gateways, maps = 4, 12
	asker := open(t, dsn, "")
	mustRaise(t, asker, 1)
	var ids, number atomic.Int64
	number.Store(1)
	accepted, acknowledged := make([]sync.Map, maps+2), make([]atomic.Int64, maps+2) // by map: the keys that were acknowledged, and how many
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range gateways {
		s := open(t, dsn, "")
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				under, now := number.Load(), time.Now()
				var batch []*journal.Record
				for range 5 {
					id := ids.Add(1)
					batch = append(batch, placed(id, fmt.Sprint("evt_", id), under))
				}
				results, err := s.Accept(context.Background(), batch, now, now)
				if err != nil {
					t.Error(err)
					return
				}
				for i, r := range results {
					if r.Status == journal.Accepted {
						accepted[under].Store(batch[i].Key, true)
						acknowledged[under].Add(1)
					}
				}
			}
		})
	}
	counted := func(under int64) (keys []string, err error) {
		r, err := asker.CellRecord(t.Context())
		if err != nil || len(r.Maps) == 0 {
			return nil, err
		}
		last := ids.Load() + 1
		for id := range last {
			keys = append(keys, fmt.Sprint("evt_", id))
		}
		known := map[string]journal.Known{}
		for len(keys) > 0 {
			n := min(len(keys), journal.MaxKnown)
			some, err := asker.Known(t.Context(), "stripe", keys[:n])
			if err != nil {
				return nil, err
			}
			for k, v := range some {
				known[k] = v
			}
			keys = keys[n:]
		}
		for k := range known {
			keys = append(keys, k)
		}
		return keys, nil
	}
	read := make([]map[string]bool, maps+2)
	for next := int64(2); next <= maps; next++ {
		for late := time.Now().Add(time.Minute); acknowledged[next-1].Load() < 20; time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("under map %d, %d were accepted", next-1, acknowledged[next-1].Load())
			}
		}
		mustRaise(t, asker, next)
		keys, err := counted(next - 1) // the number that gateways go by is not changed yet: all of them are late
		if err != nil {
			t.Fatal(err)
		}
		read[next] = map[string]bool{}
		for _, k := range keys {
			read[next][k] = true
		}
		time.Sleep(20 * time.Millisecond) // in which those that are late go on trying
		number.Store(next)
	}
	close(stop)
	group.Wait()
	for next := int64(2); next <= maps; next++ {
		accepted[next-1].Range(func(key, _ any) bool {
			if !read[next][key.(string)] {
				t.Errorf("%s was accepted under map %d, and could not be read when map %d was stored", key, next-1, next)
			}
			return true
		})
	}
}

// A new map waits for what has passed the fence and is not committed: it may be asked for as soon as the map is stored.
func TestAMapWaitsForWhatIsBeingAccepted(t *testing.T) {
	t.Parallel()
	dsn, ctx := pgtest.DSN(t), t.Context()
	s := open(t, dsn, "")
	mustRaise(t, s, 1)
	h := hold(t, dsn)
	raised := make(chan error, 1)
	accepted := accepting(s, placed(1, "evt_1", 1))
	h.waiting("advisory", 1)
	go func() { raised <- s.RaiseCellMap(ctx, journal.CellRaise{Cell: "eu", Maps: cellMaps(2)}) }()
	blocked := make(chan struct{})
	go func() { h.waiting("relation", 1); close(blocked) }()
	select {
	case err := <-raised:
		t.Fatalf("the map did not wait (%v)", err)
	case <-blocked:
	}
	h.release()
	if a := <-accepted; a.err != nil || a.results[0].Status != journal.Accepted {
		t.Errorf("%+v", a)
	}
	if err := <-raised; err != nil {
		t.Error(err)
	}
}

// holder has what stores events wait.
type holder struct {
	*pgx.Conn
	t testing.TB
}

// hold has whatever stores an event wait until release is called.
func hold(t testing.TB, dsn string) *holder {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	for _, text := range []string{
		`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END'`,
		`CREATE TRIGGER hold BEFORE INSERT ON hookonce.events FOR EACH ROW EXECUTE FUNCTION hold()`,
		`SELECT pg_advisory_lock(7)`,
	} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return &holder{conn, t}
}

// waiting waits until so many wait for a lock of that kind.
func (h *holder) waiting(event string, want int) {
	deadline := time.Now().Add(time.Minute)
	for n := 0; n < want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Errorf("%d wait for a lock of kind %s, want %d", n, event, want)
			return
		}
		if err := h.QueryRow(h.t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1`, event).Scan(&n); err != nil {
			h.t.Error(err)
			return
		}
	}
}

func (h *holder) release() {
	if _, err := h.Exec(h.t.Context(), `SELECT pg_advisory_unlock(7)`); err != nil {
		h.t.Fatal(err)
	}
}

// answered is what Accept returned.
type answered struct {
	results []journal.Result
	err     error
}

// accepting accepts a record meanwhile.
func accepting(s *pg.Store, r *journal.Record) <-chan answered {
	c := make(chan answered, 1)
	go func() {
		results, err := s.Accept(context.Background(), []*journal.Record{r}, time.Now(), time.Now())
		c <- answered{results, err}
	}()
	return c
}

// The first map waits for what a gateway without cells is storing, and a later one for what is stored under the one before, so that
// what is asked for afterwards can be read; and what came after the map stores nothing, although it began before that was there. By
// either statement, and where a transaction has one snapshot for all that it does: that is taken before the server waits.
func TestMapsFenceWhateverTransactionsSee(t *testing.T) {
	t.Parallel()
	for isolation, setting := range snapshots {
		for statement, resource := range map[string]string{"plain": "", "ordered": "r"} {
			for number, refused := range map[int64]error{0: journal.ErrNoCells, 1: journal.ErrCellMap} {
				t.Run(fmt.Sprintf("%s, %s, after map %d", isolation, statement, number), func(t *testing.T) {
					t.Parallel()
					fences(t, setting, resource, number, refused)
				})
			}
		}
	}
}

// fences stores events under the map of that number, or under none, while the next one comes.
func fences(t *testing.T, setting, resource string, number int64, refused error) {
	dsn := pgtest.DSN(t)
	record := func(id int64, key string) *journal.Record {
		r := placed(id, key, number)
		if r.Resource = resource; resource != "" {
			r.Ordered = r.Destinations
		}
		return r
	}
	raiser := open(t, dsn, "")
	if number > 0 {
		mustRaise(t, raiser, number)
	}
	under, after := open(t, dsn+setting+"&pool_max_conns=1", ""), open(t, dsn+setting+"&pool_max_conns=1", "")
	for i, s := range []*pg.Store{under, after} { // which prepares the statement: the next one locks when it is carried out
		if a := <-accepting(s, record(int64(i+1), fmt.Sprint("before_", i))); a.err != nil || a.results[0].Status != journal.Accepted {
			t.Fatal(a)
		}
	}
	h := hold(t, dsn)
	first := accepting(under, record(11, "under way"))
	h.waiting("advisory", 1)
	raised := make(chan error, 1)
	go func() {
		raised <- raiser.RaiseCellMap(context.Background(), journal.CellRaise{Cell: "eu", Maps: cellMaps(number + 1)})
	}()
	h.waiting("relation", 1)
	second := accepting(after, record(12, "too late"))
	h.waiting("relation", 2)
	h.release()
	if a := <-first; a.err != nil || a.results[0].Status != journal.Accepted {
		t.Errorf("what was under way: %+v", a)
	}
	if err := <-raised; err != nil {
		t.Error(err)
	}
	if a := <-second; a.err != nil || !errors.Is(a.results[0].Err, refused) {
		t.Errorf("what waited for the map: %+v", a)
	}
	if known, err := raiser.Known(t.Context(), "stripe", []string{"under way", "too late"}); err != nil || len(known) != 1 {
		t.Errorf("on record are %v, %v", known, err)
	}
}

// What is stored under a map locks no row of the fence, of which many at once would make a multixact with each commit, and a dump
// holds no map up.
func TestTheFenceIsHeldWithoutItsRow(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	mustRaise(t, s, 1)
	dump, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close(context.Background())
	for _, text := range []string{`BEGIN`, `LOCK TABLE hookonce.cell_fence IN ACCESS SHARE MODE`} {
		if _, err := dump.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	locked := func() (by string) {
		if err := dump.QueryRow(t.Context(), `SELECT xmax::text FROM hookonce.cell_fence`).Scan(&by); err != nil {
			t.Fatal(err)
		}
		return by
	}
	for number := int64(1); number < 3; number++ {
		before := locked()
		if a := <-accepting(s, placed(number, fmt.Sprint("evt_", number), number)); a.err != nil || a.results[0].Status != journal.Accepted {
			t.Fatal(a)
		}
		if after := locked(); after != before {
			t.Errorf("under map %d the row is locked by transaction %s, and was by %s", number, after, before)
		}
		mustRaise(t, s, number+1)
	}
}

// A store that gives keys away by its first map has to be empty when it does, and not a moment before.
func TestAFirstMapThatOthersOwnNeedsAnEmptyStore(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	h := hold(t, dsn)
	accepted := accepting(s, placed(1, "evt", 0))
	h.waiting("advisory", 1)
	raised := make(chan error, 1)
	go func() {
		raised <- s.RaiseCellMap(context.Background(), journal.CellRaise{Cell: "eu", Maps: cellMaps(1), Fresh: true})
	}()
	h.waiting("relation", 1)
	h.release()
	if a := <-accepted; a.err != nil || a.results[0].Status != journal.Accepted {
		t.Errorf("%+v", a)
	}
	if err := <-raised; !errors.Is(err, journal.ErrCellEvents) {
		t.Errorf("a map that gives away what was stored meanwhile: %v", err)
	}
	if a := <-accepting(s, placed(2, "evt_2", 0)); a.err != nil || a.results[0].Status != journal.Accepted {
		t.Errorf("after a map that was refused: %+v", a)
	}
	for range 2 { // the second time there is a map
		if err := s.RaiseCellMap(t.Context(), journal.CellRaise{Cell: "eu", Maps: cellMaps(1)}); err != nil {
			t.Error(err)
		}
	}
	if err := s.RaiseCellMap(t.Context(), journal.CellRaise{Cell: "eu", Maps: cellMaps(1, 2), Fresh: true}); err != nil {
		t.Errorf("a second map: %v", err)
	}
	// Its maps are taken back, as the page says for two of one number: it has its name, and events that nobody would ask it for.
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, text := range []string{"DELETE FROM hookonce.cell_maps", "DELETE FROM hookonce.cell_confirmations", "UPDATE hookonce.cell_fence SET number = 0"} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RaiseCellMap(t.Context(), journal.CellRaise{Cell: "eu", Maps: cellMaps(1), Fresh: true}); !errors.Is(err, journal.ErrCellEvents) {
		t.Errorf("a first map after its maps were taken back: %v", err)
	}
}

// A first map that others own is refused for good by a store that has events: whoever tries again and again has nobody wait.
func TestARefusedFirstMapLocksNothing(t *testing.T) {
	t.Parallel()
	dsn, ctx := pgtest.DSN(t), t.Context()
	s := open(t, dsn, "")
	if a := <-accepting(s, placed(1, "evt", 0)); a.err != nil {
		t.Fatal(a)
	}
	dump, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close(context.Background())
	for _, text := range []string{`BEGIN`, `LOCK TABLE hookonce.cell_fence IN ACCESS SHARE MODE`} {
		if _, err := dump.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RaiseCellMap(ctx, journal.CellRaise{Cell: "eu", Maps: cellMaps(1), Fresh: true}); !errors.Is(err, journal.ErrCellEvents) {
		t.Errorf("it waited for who reads the table: %v", err)
	}
}

// A first map that was not stored in the end, at whatever moment its process died, leaves a store that takes events.
func TestAFirstMapThatWasRolledBackFencesNobody(t *testing.T) {
	t.Parallel()
	for isolation, setting := range snapshots {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			s := open(t, dsn+setting, "")
			for _, text := range []string{
				`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''%'', current_setting(''idle_in_transaction_session_timeout''); END'`,
				`CREATE TRIGGER die AFTER INSERT ON hookonce.cell_fence FOR EACH ROW EXECUTE FUNCTION die()`,
			} {
				exec(t, dsn, text)
			}
			// It dies in the last moment; and one that stands still instead is ended by the server.
			if err := s.RaiseCellMap(t.Context(), journal.CellRaise{Cell: "eu", Maps: cellMaps(1)}); err == nil || !strings.Contains(err.Error(), "3s") {
				t.Errorf("with a limit for a process that stands still: %v", err)
			}
			batch := []*journal.Record{placed(1, "one", 0), placed(2, "\x00", 0), placed(3, "two", 0)}
			for range 2 { // the second time it is known what kind of transactions these are
				results, err := s.Accept(t.Context(), batch, time.Now(), time.Now())
				if err != nil || results[0].Err != nil || results[2].Err != nil || results[1].Err == nil || errors.Is(results[1].Err, journal.ErrCellMap) {
					t.Errorf("%+v, %v", results, err)
				}
			}
			exec(t, dsn, `DROP TRIGGER die ON hookonce.cell_fence`)
			mustRaise(t, s, 1)
			if a := <-accepting(s, placed(4, "three", 0)); a.err != nil || !errors.Is(a.results[0].Err, journal.ErrNoCells) {
				t.Errorf("under a map: %+v", a)
			}
		})
	}
}

// exec runs a statement by itself.
func exec(t testing.TB, dsn, text string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		_, err = conn.Exec(t.Context(), text)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What the page lists is enough for a gateway in a cell, which does not own the tables.
func TestCellRights(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	ctx := t.Context()
	open(t, dsn, "").Close()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	grants := []string{"CREATE ROLE cell_app LOGIN", "GRANT USAGE ON SCHEMA hookonce TO cell_app"}
	for _, g := range append(gatewayRights(t), listedRights(t, "| `hookonce cells`, ")...) {
		grants = append(grants, g.in("hookonce", "cell_app"))
	}
	for _, text := range grants {
		if _, err := conn.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err == nil {
			defer conn.Close(context.Background())
			_, err = conn.Exec(context.Background(), "DROP OWNED BY cell_app; DROP ROLE cell_app")
		}
		if err != nil {
			t.Error(err)
		}
	})
	s, err := pg.Open(ctx, strings.Replace(dsn, "postgres@", "cell_app@", 1), pg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustRaise(t, s, 1, 2)
	if err := s.ConfirmCell(ctx, journal.CellConfirmation{Cell: "us", Number: 2, At: time.Now()}); err != nil {
		t.Error(err)
	}
	if r, err := s.CellRecord(ctx); err != nil || len(r.Maps) != 2 || len(r.Confirmations) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if results, err := s.Accept(ctx, []*journal.Record{placed(1, "evt", 2)}, time.Now(), time.Now()); err != nil || results[0].Status != journal.Accepted {
		t.Errorf("%+v, %v", results, err)
	}
	if _, err := conn.Exec(ctx, "REVOKE ALL ON hookonce.cell_fence FROM cell_app"); err != nil {
		t.Fatal(err)
	}
	if name, err := s.CellName(ctx); err == nil || !strings.Contains(err.Error(), `GRANT SELECT ON "hookonce".cell_fence`) {
		t.Errorf("who may not read it is told the name %q, %v", name, err)
	}
}
