package outgoing

import (
	"io"
	"net/http"
	"time"
)

// MaxHead is how much of an answer is kept for people, in bytes.
const MaxHead = 512

const (
	// maxDrained is how much more of it is read so that its connection can be used again.
	maxDrained = 16 << 10
	// answerTime is how long reading may take once the status is known, which alone decides. A slower
	// or longer answer costs the connection and nothing else.
	answerTime = 500 * time.Millisecond
)

// Answer is the body of an answer of which little is read, in little time.
type Answer struct {
	body io.ReadCloser
	stop *time.Timer
}

// NewAnswer begins to count the time. Cancel ends the request.
func NewAnswer(r *http.Response, cancel func()) *Answer {
	if _, switched := r.Body.(io.Writer); switched {
		// The bare connection after a 101: cancelling does not end reads of it.
		_ = r.Body.Close()
		return &Answer{body: http.NoBody}
	}
	a := &Answer{body: r.Body}
	if r.Body != http.NoBody {
		a.stop = time.AfterFunc(answerTime, cancel)
	}
	return a
}

// Head reads the first bytes of the answer, or what came of them in time.
func (a *Answer) Head() []byte {
	if a.body == http.NoBody {
		return nil
	}
	head := make([]byte, MaxHead)
	n, _ := io.ReadFull(a.body, head)
	return head[:n:n]
}

// Drain reads a little more and closes the body. It may be called on nil.
func (a *Answer) Drain() {
	if a == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, a.body, maxDrained)
	_ = a.body.Close()
	if a.stop != nil {
		a.stop.Stop()
	}
}
