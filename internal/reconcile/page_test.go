package reconcile

import (
	"errors"
	"testing"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestLeftOut: only of a sender that leaves an empty list out is an answer without the list an empty one, and never where the
// answer says that something went wrong.
func TestLeftOut(t *testing.T) {
	for _, c := range []struct {
		leftOut bool
		body    string
		good    bool
	}{
		{true, `{}`, true},
		{true, `{"events": null}`, true},
		{true, `{"errors": [{"code": "UNAUTHORIZED"}]}`, false},
		{true, `[]`, false},
		{false, `{}`, false},
		{false, `{"events": null}`, false},
		{false, `{"events": []}`, true},
	} {
		p, err := parsePage([]byte(c.body), &spec.List{Items: "$.events", LeftOut: c.leftOut})
		if (err == nil) != c.good || len(p.items) > 0 || err != nil && !errors.Is(err, ErrLies) {
			t.Errorf("%s, left out %t: %d entries, %v", c.body, c.leftOut, len(p.items), err)
		}
	}
}
