package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// rows are what a store has to delete. It may fail once so many are gone.
type rows struct {
	left, failsAt int
	limits        []int
}

func (r *rows) Purge(_ context.Context, req hookonce.PurgeRequest) (int, error) {
	r.limits = append(r.limits, req.Limit)
	n := min(r.left, req.Limit)
	if r.left -= n; r.left < r.failsAt {
		return n, errors.New("the store is away")
	}
	return n, nil
}

// Purge goes on until nothing is left, in steps, and says how much it was, also of what came before an error.
func TestPurgeToTheEnd(t *testing.T) {
	for _, c := range []struct {
		rows   rows
		limits []int
		said   string
	}{
		{rows{left: 2500}, []int{1000, 1000, 1000}, "2500 claim(s) deleted.\n"},
		{rows{left: 2000}, []int{1000, 1000, 1000}, "2000 claim(s) deleted.\n"},
		{rows{left: 7}, []int{1000}, "7 claim(s) deleted.\n"},
		{rows{left: 2500, failsAt: 1000}, []int{1000, 1000}, "after 2000: the store is away"},
	} {
		var out bytes.Buffer
		req := hookonce.PurgeRequest{Kind: hookonce.PurgeEvents, Before: time.Now().Add(-leastAge)}
		err := purge(t.Context(), &env{out: &out}, &c.rows, req)
		if err != nil {
			out.WriteString(err.Error())
		}
		if out.String() != c.said || !slices.Equal(c.rows.limits, c.limits) {
			t.Errorf("in steps of %v it says %q, want %v and %q", c.rows.limits, &out, c.limits, c.said)
		}
	}
}
