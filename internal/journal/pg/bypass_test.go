package pg_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// recordBypassed records that the event went past the store.
func (c *crossing) recordBypassed(ended chan<- error) {
	ended <- c.store.RecordBypassed(c.Context(), []journal.Outcome{{
		Held: journal.Held{EventID: c.id, Destination: "app"}, State: journal.Done, Status: 200, Started: time.Now(),
	}})
}

// tokens are those of the attempts on record, if nothing is open.
func (c *crossing) tokens() (tokens []int64) {
	c.Helper()
	h, err := c.store.History(c.Context(), c.id)
	if err != nil || len(h.Deliveries) != 0 {
		c.Fatalf("open: %+v, %v", h, err)
	}
	for _, a := range h.Attempts {
		tokens = append(tokens, a.Token)
	}
	slices.Sort(tokens)
	return tokens
}

// TestBypassedTakesTurnsWithReplays: a replay has found that a delivery is done, and makes it anew above the tokens that it saw. An
// attempt past the store that does not wait takes one of these.
func TestBypassedTakesTurnsWithReplays(t *testing.T) {
	for name, settings := range snapshots {
		t.Run(name, func(t *testing.T) {
			c := cross(t, settings, `LOCK TABLE hookonce.audits IN SHARE MODE`) // where a replay writes after it has read
			replays, records := make(chan replayed, 1), make(chan error, 1)
			go c.replay(replays)
			c.awaitWaiting(1)
			go c.recordBypassed(records)
			c.awaitWaiting(2)
			c.goOn()
			if got := <-replays; got.err != nil || got.Deliveries != 1 {
				t.Errorf("replayed %+v", got)
			}
			if err := <-records; err != nil {
				t.Error(err)
			}
			if got := c.tokens(); !slices.Equal(got, []int64{1, 3}) {
				t.Errorf("attempts under the tokens %v, want 1 and 3", got)
			}
		})
	}
}

// TestBypassedSeesWhatItWaitedFor: the outcome of the last attempt is being recorded. The one past the store comes under the token
// after that.
func TestBypassedSeesWhatItWaitedFor(t *testing.T) {
	for name, settings := range snapshots {
		t.Run(name, func(t *testing.T) {
			c := cross(t, settings, `SELECT`)
			replays, records := make(chan replayed, 1), make(chan error, 1)
			if c.replay(replays); (<-replays).Deliveries != 1 {
				t.Fatal("nothing was replayed")
			}
			for _, sql := range []string{
				`UPDATE hookonce.deliveries SET token = 3, state = 'processing'`,
				`INSERT INTO hookonce.attempts (event_id, destination, token, outcome, status, started_at, duration_us)
					SELECT event_id, destination, token, 'done', 200, now(), 0 FROM hookonce.deliveries`,
				`DELETE FROM hookonce.deliveries`,
			} {
				if _, err := c.tx.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			go c.recordBypassed(records)
			c.awaitWaiting(1)
			c.goOn()
			if err := <-records; err != nil {
				t.Error(err)
			}
			if got := c.tokens(); !slices.Equal(got, []int64{1, 3, 4}) {
				t.Errorf("attempts under the tokens %v, want 1, 3 and 4", got)
			}
		})
	}
}
