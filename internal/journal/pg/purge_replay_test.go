package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// crossing is a finished event that one call wants to purge and another to replay, and a session that
// stops either in its midst.
type crossing struct {
	*testing.T
	store *pg.Store
	id    int64
	conn  *pgx.Conn
	tx    pgx.Tx
}

// cross finishes an event and runs the statement, which takes the lock, in a transaction.
func cross(t *testing.T, settings, lock string) *crossing {
	t.Helper()
	dsn := pgtest.DSN(t)
	c := &crossing{T: t, store: open(t, dsn+settings, "")}
	e := entry("evt_1")
	e.Hold = nil
	if _, err := accept(t.Context(), c.store, e); err != nil {
		t.Fatal(err)
	}
	c.id = e.ID
	finish(t, c.store, take(t, c.store, "evt_1")[0])
	var err error
	if c.conn, err = pgx.Connect(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close(context.Background()) })
	if c.tx, err = c.conn.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.tx.Exec(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	return c
}

// replayed is the outcome of a replay.
type replayed struct {
	journal.Replayed
	err error
}

func (c *crossing) replay(ended chan<- replayed) {
	done, err := c.store.Replay(c.Context(), journal.Replay{Force: true, EventID: c.id, Start: time.Now(), By: "ada", Reason: "x"}, 10)
	ended <- replayed{done, err}
}

// purged is the outcome of a purge.
type purged struct {
	journal.Purged
	err error
}

func (c *crossing) purge(ended chan<- purged) {
	done, err := c.store.Purge(c.Context(), everything(journal.KindBodies))
	ended <- purged{done, err}
}

// awaitWaiting waits until so many sessions wait for others.
func (c *crossing) awaitWaiting(n int) {
	c.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var waiting int
		if err := c.conn.QueryRow(c.Context(), `SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted`).Scan(&waiting); err != nil {
			c.Fatal(err)
		}
		if waiting == n {
			return
		}
	}
	c.Errorf("there never were %d sessions that wait", n)
}

func (c *crossing) goOn() {
	c.Helper()
	if err := c.tx.Commit(c.Context()); err != nil {
		c.Fatal(err)
	}
}

// snapshots are what servers and roles may be set to.
var snapshots = map[string]string{"each statement sees": "", "one snapshot": "&default_transaction_isolation=repeatable%20read"}

// TestReplayWaitsForPurge: a purge has seen that nothing of an event is open, and deletes its body. A replay
// that does not wait makes a delivery that is buried as dead for want of the body, or belongs to no event.
func TestReplayWaitsForPurge(t *testing.T) {
	for name, settings := range snapshots {
		t.Run(name, func(t *testing.T) {
			c := cross(t, settings, `SELECT FROM hookonce.bodies FOR UPDATE`)
			purges, replays := make(chan purged, 1), make(chan replayed, 1)
			go c.purge(purges)
			c.awaitWaiting(1)
			go c.replay(replays)
			c.awaitWaiting(2)
			c.goOn()
			if got := <-purges; got.err != nil || got.Deleted != 1 {
				t.Errorf("purged %+v", got)
			}
			if got := <-replays; got.err != nil || got.Deliveries != 0 {
				t.Errorf("replayed what was purged: %+v", got)
			}
			if stats, err := c.store.Stats(t.Context()); err != nil || len(stats.Open) != 0 {
				t.Errorf("open: %v, %v", stats.Open, err)
			}
		})
	}
}

// TestPurgePassesReplay: a replay has seen that an event has its body, and makes a delivery. A purge that
// does not see that does nothing, until next time.
func TestPurgePassesReplay(t *testing.T) {
	for name, settings := range snapshots {
		t.Run(name, func(t *testing.T) {
			c := cross(t, settings, `LOCK TABLE hookonce.audits IN SHARE MODE`) // where a replay writes after it has read
			replays, purges := make(chan replayed, 1), make(chan purged, 1)
			go c.replay(replays)
			c.awaitWaiting(1)
			c.purge(purges)
			if got := <-purges; got.err != nil || got.Purged != (journal.Purged{Busy: true}) {
				t.Errorf("beside a replay: purged %+v", got)
			}
			c.goOn()
			if got := <-replays; got.err != nil || got.Deliveries != 1 {
				t.Errorf("replayed %+v", got)
			}
			finish(t, c.store, take(t, c.store, "evt_1")[0])
			if c.purge(purges); (<-purges).Deleted != 1 {
				t.Error("nothing is purged after the replay")
			}
		})
	}
}
