package deliver

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/retry"
)

func TestBreakerFitsSchedule(t *testing.T) {
	const s = time.Second
	usual := Breaker{Failures: 10}
	for _, c := range []struct {
		name     string
		breaker  Breaker
		schedule retry.Schedule
		want     Breaker
	}{
		{"the default schedule", usual, retry.Default(), Breaker{10, s, 4 * s}},
		{"no retries", usual, retry.Schedule{}, Breaker{10, s, 4 * s}},
		{"quick retries", usual, retry.Schedule{Attempts: 4, First: s / 4, Longest: s, Factor: 2}, Breaker{10, s / 4, s}},
		{"retries at once", usual, retry.Schedule{Attempts: 3}, Breaker{10, s / 10, s / 10}},
		{"slow retries", usual, retry.Schedule{Attempts: 2, First: time.Hour, Longest: time.Hour}, Breaker{10, s, 4 * s}},
		{"short and steady", usual, retry.Schedule{Attempts: 3, First: 2 * s, Longest: 2 * s, Factor: 1}, Breaker{10, s, 2 * s}},
		{"own pauses", Breaker{3, 20 * s, 30 * s}, retry.Schedule{Attempts: 2, First: s, Longest: s}, Breaker{3, 20 * s, 30 * s}},
		{"a long first pause", Breaker{Failures: 10, Pause: time.Hour}, retry.Default(), Breaker{10, time.Hour, time.Hour}},
		{"off", Breaker{}, retry.Schedule{Attempts: 2, First: s, Longest: s}, Breaker{0, s, s}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := c.breaker.fit(c.schedule); err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}
