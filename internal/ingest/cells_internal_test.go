package ingest

import (
	"errors"
	"testing"

	"github.com/hookonce/hookonce/internal/cells"
)

// An answer of another cell is passed on if it says of each event that was handed on what became of it.
func TestAnswersAccountForEveryEvent(t *testing.T) {
	for counts, want := range map[string]error{
		"1,0,1,0,0": nil, "0,0,0,0,0": cells.ErrDisagree, "1,0,0,0,0": cells.ErrDisagree, "3,0,0,0,0": cells.ErrDisagree, "2": cells.ErrRefused, "": cells.ErrRefused,
	} {
		if err := accounted(&cells.Answer{Counts: counts}, 2); !errors.Is(err, want) {
			t.Errorf("two events are answered %q: %v, want %v", counts, err, want)
		}
	}
}
