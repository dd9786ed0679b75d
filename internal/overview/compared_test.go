package overview

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// What is shown of a source that is compared is what its mark says, and what is configured stays as it is.
func TestCompared(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	v := &Overview{}
	v.marks.value = []journal.Mark{
		{Source: "other", Through: at.Add(-time.Hour)},
		{Source: "billing", Through: at, Holder: "g", Lease: at.Add(2 * time.Minute), Last: journal.MarkResult{Ended: at.Add(time.Minute), Listed: 5, Missing: 2, Recovered: 1, Error: "it was closed"}},
	}
	configured := &Compared{Every: 900}
	o, other := SourceState{Name: "billing", Compared: configured}, SourceState{Name: "other"}
	v.drawCompared(&o, at.Add(time.Minute))
	v.drawCompared(&other, at.Add(time.Minute))
	want := Compared{Every: 900, Through: at, Ended: at.Add(time.Minute), Listed: 5, Missing: 2, Recovered: 1, Error: "it was closed", Running: true}
	if *o.Compared != want || other.Compared != nil || *configured != (Compared{Every: 900}) {
		t.Errorf("shown are %+v and %+v; configured is %+v", o.Compared, other.Compared, configured)
	}
	if v.drawCompared(&o, at.Add(2*time.Minute)); o.Compared.Running {
		t.Error("it is being compared by somebody whose lease has ended")
	}
}
