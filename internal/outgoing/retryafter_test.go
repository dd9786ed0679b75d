package outgoing_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
)

// FuzzRetryAfter: whatever an answer asks for, its sender is left alone for a day at most, and never for a
// time that lies in the past.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"", "0", "60", "-1", "1e3", "99999999999999999999", "Wed, 21 Oct 2026 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "soon"} {
		f.Add(value, 503, int64(1700000000))
		f.Add(value, 429, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, status int, now int64) {
		answer := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {value}}}
		wait := outgoing.RetryAfter(answer, time.Unix(now, 0))
		if wait < 0 || wait > outgoing.MaxRetryAfter || wait > 0 && status != 429 && status != 503 {
			t.Fatalf("%q with status %d makes us wait %v", value, status, wait)
		}
	})
}
