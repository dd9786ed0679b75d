package schedule

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// Who asks has a source alone for as long as it takes, and leaves what the schedule knows of it as it was.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), journaltest.NewMemory()
		m, _, err := store.TakeMark(ctx, "billing", "schedule", time.Now(), time.Now().Add(leaseTime))
		if err != nil {
			t.Fatal(err)
		}
		through := time.Now().Add(-time.Hour)
		if _, err := store.AdvanceMark(ctx, "billing", m.Token, journal.MarkAdvance{Through: through, Lease: time.Now().Add(leaseTime)}); err != nil {
			t.Fatal(err)
		}
		never := func(context.Context) error { t.Error("two compare a source"); return nil }
		if err := Alone(ctx, store, time.Now, "billing", never); !errors.Is(err, ErrBusy) {
			t.Errorf("while the schedule compares it: %v", err)
		}
		last := journal.MarkResult{Ended: time.Now(), Listed: 7, Missing: 2}
		if _, err := store.ReleaseMark(ctx, "billing", m.Token, last); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken off")
		err = Alone(ctx, store, time.Now, "billing", func(ctx context.Context) error {
			time.Sleep(10 * leaseTime)
			if err := Alone(ctx, store, time.Now, "billing", never); !errors.Is(err, ErrBusy) {
				t.Errorf("while somebody has compared it for long: %v", err)
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("its error is %v", err)
		}
		marks, err := store.Marks(ctx)
		if err != nil || len(marks) != 1 || !marks[0].Through.Equal(through) || marks[0].Last != last || marks[0].Holder != "" {
			t.Errorf("the mark is %+v, %v", marks, err)
		}
	})
}

// Who could not give the source back says that nobody else can have it for a while, beside what else went wrong.
func TestAloneKeepsIt(t *testing.T) {
	broken := errors.New("broken off")
	for name, failed := range map[string]error{"it went well": nil, "it failed": broken} {
		store := journaltest.NewFaulty(journaltest.NewMemory())
		store.Fail(journaltest.OpReleaseMark, 1, journaltest.NotPersisted)
		err := Alone(t.Context(), store, time.Now, "billing", func(context.Context) error { return failed })
		if err == nil || !strings.Contains(err.Error(), "for a minute nobody else can compare it") || failed != nil && !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who has lost the source to somebody else ends, and says so.
func TestAloneLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewMemory()
		err := Alone(t.Context(), store, time.Now, "billing", func(ctx context.Context) error {
			late := time.Now().Add(2 * leaseTime) // by the clock of the other
			if _, taken, err := store.TakeMark(ctx, "billing", "other", late, late.Add(time.Hour)); !taken || err != nil {
				t.Errorf("taken: %v, %v", taken, err)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, errTaken) {
			t.Errorf("its error is %v", err)
		}
		if marks, err := store.Marks(t.Context()); err != nil || marks[0].Holder != "other" {
			t.Errorf("the mark is %+v, %v", marks, err)
		}
	})
}
