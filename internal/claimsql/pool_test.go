package claimsql_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/claimsql"
)

// A full pool explains a time that ran out; in a pool of one, which each handler fills, somebody must have waited.
func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		size, handlers int
		waited, left   bool
		err            error
		explained      bool
	}{
		"without a limit":           {0, 2, true, false, context.DeadlineExceeded, false},
		"room is left":              {2, 1, true, false, context.DeadlineExceeded, false},
		"full":                      {2, 2, false, false, context.DeadlineExceeded, true},
		"full, and another failure": {2, 2, false, false, context.Canceled, false},
		"full, a while ago":         {2, 2, false, true, context.DeadlineExceeded, false},
		"one, and nobody waited":    {1, 1, false, false, context.DeadlineExceeded, false},
		"one, and somebody waited":  {1, 1, true, false, context.DeadlineExceeded, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var handlers claimsql.PoolWatch
			waits := int64(7)
			count := func() int64 { return waits }
			for range c.handlers {
				handlers.Enter(c.size, count)
			}
			if c.left {
				for range c.handlers {
					handlers.Leave(c.size)
				}
				time.Sleep(2 * time.Second)
			}
			if c.waited {
				waits++
			}
			err := handlers.Explain(t.Context(), c.size, count, c.err)
			if got := strings.Contains(err.Error(), "held by handlers"); got != c.explained {
				t.Errorf("%s: explained: %v, want %v (%v)", name, got, c.explained, err)
			}
		})
	}
}
