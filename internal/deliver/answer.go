package deliver

import (
	"io"
	"net/http"
	"time"
)

const (
	// maxHead is how much of an answer is kept with the attempt, in bytes.
	maxHead = 512
	// maxDrained is how much more of it is read so that its connection can be used again.
	maxDrained = 16 << 10
	// answerTime is how long reading may take once the status is known, which alone decides. A slower
	// or longer answer costs the connection and nothing else.
	answerTime = 500 * time.Millisecond
)

// answer is the body of a destination's answer, of which little is read.
type answer struct {
	body io.ReadCloser
	stop *time.Timer
}

// newAnswer begins to count the time. Cancel ends the request.
func newAnswer(r *http.Response, cancel func()) *answer {
	if _, switched := r.Body.(io.Writer); switched {
		// The bare connection after a 101: cancelling does not end reads of it.
		_ = r.Body.Close()
		return &answer{body: http.NoBody}
	}
	a := &answer{body: r.Body}
	if r.Body != http.NoBody {
		a.stop = time.AfterFunc(answerTime, cancel)
	}
	return a
}

// head reads the first bytes of the answer, or what came of them in time.
func (a *answer) head() []byte {
	if a.body == http.NoBody {
		return nil
	}
	head := make([]byte, maxHead)
	n, _ := io.ReadFull(a.body, head)
	return head[:n:n]
}

// drain reads a little more and closes the body.
func (a *answer) drain() {
	if a == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, a.body, maxDrained)
	_ = a.body.Close()
	if a.stop != nil {
		a.stop.Stop()
	}
}
