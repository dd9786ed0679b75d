package ingest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// firstStep is how much memory is set aside for a body when its first byte is there. Above it the memory grows with what was
// received, so that announcing much and sending little costs the sender more than us.
const firstStep = 4 << 10

// readBody returns the raw body of at most limit bytes, or a refusal. A body that is announced as
// larger is refused before any of it is read, so that a sender that asks first (Expect: 100-continue)
// never sends it. The capacity of what is returned is among what the request holds.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, timeout time.Duration, held *holding) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	// The deadline belongs to a socket and so counts in real time. A response writer without
	// deadlines leaves the matter to the server's own timeouts.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
	body, err := readUpTo(r.Body, r.ContentLength, limit, held)
	if !held.complete() {
		return nil, errCrowded
	}
	return body, bodyError(err)
}

// readUpTo reads a body that the server frames: one that is shorter than announced is its error. One
// byte beyond the limit tells that a body of unknown length is too large. Nothing is held before the first byte.
func readUpTo(r io.Reader, announced, limit int64, held *holding) ([]byte, error) {
	most := int(limit) + 1
	if announced >= 0 {
		most = int(announced)
	}
	body := make([]byte, 0, 1)
	for len(body) < most {
		if len(body) == cap(body) {
			larger, err := grow(body, most, held)
			if err != nil {
				return body, err
			}
			body = larger
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return body, err
		}
	}
	switch {
	case int64(len(body)) > limit:
		return body, errTooLarge
	case int64(len(body)) < announced:
		return body, io.ErrUnexpectedEOF
	}
	return body, nil
}

// grow returns body with twice the room, at most for most bytes. The room of both is taken while both
// are there, which is less than twice most.
func grow(body []byte, most int, held *holding) ([]byte, error) {
	size := min(most, max(firstStep, 2*cap(body)))
	if !held.take(int64(size)) {
		return body, errCrowded
	}
	larger := make([]byte, len(body), size)
	copy(larger, body)
	if cap(body) > 1 { // the first byte came before anything was taken
		held.give(int64(cap(body)))
	}
	return larger, nil
}

// bodyError says whose fault it is that a body could not be read. It is always the sender's: our own
// limits are announced in the answer.
func bodyError(err error) error {
	var p *problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	}
	return errTruncated
}

// How long what is left of a refused body is read and thrown away, and how many bytes of it at the most.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 32 << 20
)

// linger has a sender receive the answer to a body that it has not sent to its end. Many senders read nothing before they have
// written everything, and a connection that is closed before that takes the answer with it (RFC 9112, section 9.6).
// The answer must have been written, with its length and Connection: close.
func linger(w http.ResponseWriter, r *http.Request) {
	socket := http.NewResponseController(w)
	if socket.Flush() != nil || socket.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	n, err := io.CopyBuffer(nowhere{}, io.LimitReader(r.Body, lingerBytes), make([]byte, 512))
	if err == nil && n < lingerBytes || errors.Is(err, io.ErrUnexpectedEOF) {
		return // nothing more comes
	}
	// There is more, or what framed it cannot be read any further: the server ends its side and waits a little, as it does for a
	// body beyond a limit of its own.
	_, _ = http.MaxBytesReader(w, endless{}, 0).Read(make([]byte, 1))
}

// nowhere takes what is written to it, with no buffer of its own.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }
