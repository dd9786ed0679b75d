package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func changed() *journal.Event { return entry(journal.CoalesceKey("account-1")) }

// Neither the memory of done keys nor the list of those on their way swallows what coalesces.
func TestCoalesce_doneWorkSwallowsNothing(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		for range 3 {
			r.want(r.accept(changed()), journal.Accepted)
			r.finish(r.receive(), journal.Done, time.Time{})
			synctest.Wait()
		}
	})
}

// A copy that comes while the store looks must ask for itself: what the store finds waiting may begin
// before the copy comes.
func TestCoalesce_followsNothing(t *testing.T) {
	run(t, engine.Options{}, func(t *testing.T, r *rig) {
		gate := r.fault.Block(journaltest.OpAccept)
		answers := make(chan answer, 2)
		go func() { answers <- r.accept(changed()) }()
		<-gate.Arrived
		go func() { answers <- r.accept(changed()) }()
		synctest.Wait()
		gate.Open()
		for range cap(answers) {
			r.want(<-answers, journal.Accepted) // the first is in hand by the time of the second
		}
		r.finish(r.receive(), journal.Done, time.Time{})
		r.finish(r.receive(), journal.Done, time.Time{})
	})
}
