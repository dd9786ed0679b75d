package deliver

import (
	"testing"
	"time"
)

func TestBreakerDefaults(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name     string
		breaker  *Breaker
		schedule Schedule
		want     Breaker
	}{
		{"the default schedule", nil, DefaultSchedule(), Breaker{10, s, 4 * s}},
		{"no retries", nil, Schedule{}, Breaker{10, s, 4 * s}},
		{"quick retries", nil, Schedule{s / 4, s / 2, s}, Breaker{10, s / 4, s}},
		{"retries at once", nil, Schedule{0, 0}, Breaker{10, s / 10, s / 10}},
		{"slow retries", nil, Schedule{time.Hour}, Breaker{10, s, 4 * s}},
		{"short and steady", nil, Schedule{2 * s, 2 * s}, Breaker{10, s, 2 * s}},
		{"own pauses", &Breaker{3, 20 * s, 30 * s}, Schedule{s}, Breaker{3, 20 * s, 30 * s}},
		{"a long first pause", &Breaker{Pause: time.Hour}, DefaultSchedule(), Breaker{10, time.Hour, time.Hour}},
		{"off", &Breaker{Failures: -1}, Schedule{s}, Breaker{-1, s, s}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := c.breaker.withDefaults(c.schedule); err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}
