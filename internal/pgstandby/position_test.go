package pgstandby

import (
	"errors"
	"strings"
	"testing"
)

// What a standby says of its timeline is older than what it has replayed: on the one before it may be as far as to where the
// primary's began, and not one byte farther than what is known to be of that.
func TestFollows(t *testing.T) {
	primary := Written{Database: "7 hookonce", Timeline: 3, LSN: 300 << 32, Since: 200 << 32}
	for name, c := range map[string]struct {
		Replayed
		want error
	}{
		"all of it":                        {Replayed{"7 hookonce", 300 << 32, 3, 250 << 32}, nil},
		"behind":                           {Replayed{"7 hookonce", 210 << 32, 3, 205 << 32}, nil},
		"before the promotion":             {Replayed{"7 hookonce", 190 << 32, 2, 180 << 32}, nil},
		"where it was":                     {Replayed{"7 hookonce", 200 << 32, 2, 200 << 32}, nil},
		"after it, and knows nothing yet":  {Replayed{"7 hookonce", 300 << 32, 1, 180 << 32}, nil},
		"more than the primary":            {Replayed{"7 hookonce", 300<<32 + 1, 3, 250 << 32}, ErrDiverged},
		"the former timeline":              {Replayed{"7 hookonce", 210 << 32, 2, 200<<32 + 1}, ErrDiverged},
		"a timeline that the primary left": {Replayed{"7 hookonce", 150 << 32, 4, 140 << 32}, ErrDiverged},
		"another server":                   {Replayed{"8 hookonce", 210 << 32, 3, 205 << 32}, ErrNoCopy},
	} {
		if err := c.Follows(primary); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	err := Replayed{"7 hookonce", 0x1A_2B3C4D5E, 3, 0}.Follows(Written{Database: "7 hookonce", Timeline: 3, LSN: 0x1A_00000028})
	if err == nil || !strings.Contains(err.Error(), "1A/2B3C4D5E") || !strings.Contains(err.Error(), "1A/28") {
		t.Errorf("positions are not written as PostgreSQL writes them: %v", err)
	}
}
