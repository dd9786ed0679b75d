package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
)

// The command that recovers reads no more of the list than has what is missing, as far as that is known.
func TestMissingIsRecovered(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 12, minute, 0, 500, time.UTC) }
	first, last := at(1), at(2)
	events := []api.MissingEvent{{Key: "evt_2", Happened: &last, Found: at(9)}, {Key: "evt_1", Happened: &first, Found: at(9)}}
	for want, list := range map[string]api.MissingList{
		"--source billing --since 2026-11-21T12:01:00Z --until 2026-11-21T12:02:01Z (": {Events: events},
		"--source billing --since 2026-11-21T12:01:00Z --until 2026-11-21T12:09:01Z (": {Events: append(events, api.MissingEvent{Entry: "7", Found: at(9)})},
		"--source billing --since 2026-11-21T12:01:00Z (":                              {Events: events, Beyond: 1},
		"--source billing --since TIME (":                                              {Beyond: 1},
	} {
		var out bytes.Buffer
		if err := printMissing(&env{out: &out}, "billing", &list); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("got %q, %v, want %q", &out, err, want)
		}
	}
}

// An empty list reassures only as far as somebody looked.
func TestNothingIsMissing(t *testing.T) {
	through := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for want, list := range map[string]api.MissingList{
		"Nothing is missing of what the sender made until 2026-11-21 12:00:00Z, except what the audit log names as not compared.\n":                {Through: &through},
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
