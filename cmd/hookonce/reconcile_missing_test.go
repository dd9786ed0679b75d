package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
)

// An empty list reassures only as far as somebody looked.
func TestNothingIsMissing(t *testing.T) {
	through := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for want, list := range map[string]api.MissingList{
		"Nothing is missing of what the sender made until 2026-11-21 12:00:00Z, as far as gateways compared.\n":                                    {Through: &through},
		"No gateway has compared billing with what its sender made yet, so nobody knows what is missing; hookonce alerts says so if that lasts.\n": {},
		"Gateways do not compare billing with what its sender made, so nobody knows what is missing: it says nothing of it.\n": {
			Through: &through, NotCompared: "it says nothing of it"},
	} {
		var out bytes.Buffer
		if err := printMissing(&env{out: &out}, "billing", &list); err != nil || out.String() != want {
			t.Errorf("got %q, %v, want %q", &out, err, want)
		}
	}
}
