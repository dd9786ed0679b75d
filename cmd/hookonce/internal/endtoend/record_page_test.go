package endtoend

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/pagetest"
)

var updateRecord = flag.Bool("update", false, "write the table of docs/record.md")

// The page has every run that docs/record.json has, and their sum.
func TestRunsOfRecordStandInAPage(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/record.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []record
	if err := json.Unmarshal(text, &runs); err != nil {
		t.Fatal(err)
	}
	pagetest.Table(t, "../../../../docs/record.md", "runs", tableOf(runs), *updateRecord)
}

// tableOf writes the runs, and their sum below them.
func tableOf(runs []record) string {
	var b strings.Builder
	b.WriteString("| day | store | minutes | events acknowledged | faults | gateways killed | servers killed or stopped | repeated deliveries | lost | doubled | recovery: median, p99 |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	var sum record
	sum.Faults = map[string]int{}
	row := func(day, store string, r record, recovery string) {
		faults := 0
		for _, n := range r.Faults {
			faults += n
		}
		servers := r.Faults["backend killed"] + r.Faults["server stopped at once"] + r.Faults["server killed"] + r.Faults["standby promoted"]
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %d | %d | %d | %s |\n", day, store, (r.Seconds+30)/60, r.Events, faults,
			r.Faults["gateway killed"], servers, r.Repeats, r.lost(), r.doubled(), recovery)
	}
	for _, r := range runs {
		row(r.Began.Format(time.DateOnly), r.Store, r, fmt.Sprintf("%v, %v", r.Recovery.P50.Round(10*time.Millisecond), r.Recovery.P99.Round(10*time.Millisecond)))
		sum.Seconds += r.Seconds
		sum.Events += r.Events
		sum.Repeats += r.Repeats
		sum.Lost += int(r.lost())
		sum.Doubled += r.doubled()
		for name, n := range r.Faults {
			sum.Faults[name] += n
		}
	}
	row("all", "", sum, "")
	return b.String()
}
