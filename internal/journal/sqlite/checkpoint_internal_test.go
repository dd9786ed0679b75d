package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// TestNobodyWaitsForQuestions: while people ask as much at once as they may, and get no answer, a commit that has to bound the
// log goes through, and so does a replay, which reads while it has the turn to write.
func TestNobodyWaitsForQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "hookonce.db"), Options{LogSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range s.readers.Stats().MaxOpenConnections {
			asks, err := s.readers.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer asks.Close()
		}
		soon := func(what string, f func() error) {
			t.Helper()
			ended := make(chan error, 1)
			go func() { ended <- f() }()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s waits for those who ask", what)
			}
		}
		now := time.Now()
		soon("a commit", func() error {
			e := &journal.Record{ID: journal.FirstID(now) + 1, Event: &journal.Event{
				Source: "billing", Key: "evt_1", Body: make([]byte, 64<<10), Destinations: []string{"app"}, ReceivedAt: now}}
			_, err := s.Accept(t.Context(), []*journal.Record{e}, now, now)
			return err
		})
		if log, copied, err := s.checkpoints.pragma(t.Context(), "NOOP"); err != nil || log == 0 || copied < log {
			t.Errorf("%d pages of %d were copied, %v", copied, log, err)
		}
		soon("giving up", func() error {
			work, err := s.Take(t.Context(), now, now, journal.Wanted{Deliveries: 1})
			if err != nil || len(work) != 1 {
				return fmt.Errorf("took %v, %w", work, err)
			}
			_, err = s.Finish(t.Context(), []journal.Outcome{{Held: work[0].Held, State: journal.Dead, Started: now}})
			return err
		})
		replay := journal.Replay{Start: now.Add(time.Second), By: "ada", Reason: "x"}
		for range 2 { // the second goes on with the record of the first
			soon("a replay", func() error {
				done, err := s.Replay(t.Context(), replay, 10)
				if replay.Audit == 0 && done.Deliveries != 1 {
					t.Errorf("replayed %+v", done)
				}
				replay.Audit = done.Audit
				return err
			})
		}
	})
}
