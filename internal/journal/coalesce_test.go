package journal_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func changed() *journal.Entry { return entry(journal.CoalesceKey("account-1")) }

// Neither the memory of done keys nor the list of those on their way swallows what coalesces.
func TestCoalesce_doneWorkSwallowsNothing(t *testing.T) {
	run(t, journal.Options{}, func(t *testing.T, r *rig) {
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
	run(t, journal.Options{Writers: 1}, func(t *testing.T, r *rig) {
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

func TestCoalesceKey(t *testing.T) {
	if key := journal.CoalesceKey(""); key != "" || journal.Coalesces(key) {
		t.Errorf("no key became %q", key)
	}
	seen := map[string]string{}
	for _, key := range []string{"a", "b", strings.Repeat("k", hookonce.MaxKeyLen), strings.Repeat("k", hookonce.MaxKeyLen-1), "sha256:" + strings.Repeat("0", 64)} {
		stored := journal.CoalesceKey(key)
		if err := (hookonce.Ref{Source: "billing", Key: stored}).Validate(); err != nil || !journal.Coalesces(stored) {
			t.Errorf("%q became %q: %v", key, stored, err)
		}
		if other, twice := seen[stored]; twice {
			t.Errorf("%q and %q share %q", key, other, stored)
		}
		seen[stored] = key
		// Whatever a sender writes, it cannot be the key of an event that coalesces.
		for _, sent := range []string{key, stored} {
			if journal.Coalesces(hookonce.NormalKey(sent)) {
				t.Errorf("%q passes for a key that coalesces", sent)
			}
		}
	}
}
