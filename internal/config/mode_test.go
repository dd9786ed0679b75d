package config

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestPatience: a sender is kept waiting for less than it waits.
func TestPatience(t *testing.T) {
	for _, c := range []struct{ own, waits, want time.Duration }{
		{0, 0, 10 * time.Second},
		{0, 3 * time.Second, 2500 * time.Millisecond},
		{0, 15 * time.Second, 14 * time.Second},
		{0, time.Minute, 25 * time.Second},
		{4 * time.Second, 3 * time.Second, 4 * time.Second},
	} {
		s := Source{Provider: providerCustom, Deadline: c.own, Spec: &spec.Spec{Answer: spec.Answer{Deadline: c.waits}}}
		if got := s.Patience(); got != c.want {
			t.Errorf("the sender waits %v, the setting is %v: %v, want %v", c.waits, c.own, got, c.want)
		}
	}
}
