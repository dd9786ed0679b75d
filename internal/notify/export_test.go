package notify

import (
	"testing"
	"time"
)

// SetSendTime has messages given up after d, until the test ends.
func SetSendTime(t *testing.T, d time.Duration) {
	before := sendTime
	sendTime = d
	t.Cleanup(func() { sendTime = before })
}
