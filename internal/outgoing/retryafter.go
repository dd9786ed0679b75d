package outgoing

import (
	"net/http"
	"strconv"
	"time"
)

// MaxRetryAfter bounds what an answer can ask for.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter is how long the answer, which came at now, asks to be left alone, where its status says that
// whoever sent it is busy.
func RetryAfter(answer *http.Response, now time.Time) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := answer.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), MaxRetryAfter))
	}
	return 0
}
