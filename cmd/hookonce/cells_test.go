package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A cell is given up by whoever says what is lost with it, which cannot lie in the future, and that it is meant.
func TestCellsForgetUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"us --yes", "say with --lost-since what it is known to have kept"},
		{"us --yes --lost-since yesterday", "--lost-since: "},
		{"us --yes --lost-since " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "--lost-since: it must lie in the past"},
		{"us --lost-since 1h", "repeat it with --yes"},
	} {
		var text bytes.Buffer
		w := &env{args: append([]string{"hookonce", "cells", "forget"}, strings.Fields(c.args)...), out: &text, err: &text}
		if code := execute(w); code != exitUsage || !strings.Contains(text.String(), c.want) {
			t.Errorf("cells forget %s: exit status %d\n%s", c.args, code, &text)
		}
	}
}
