package ingest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// trustedLength is up to which announced length memory is set aside before the bytes arrive. Above
// it the buffer grows with what was received, so that announcing much and sending little costs the
// sender more than us.
const trustedLength = 16 << 10

// readBody returns the raw body of at most limit bytes, or a refusal. A body that is announced as
// larger is refused before any of it is read, so that a sender that asks first (Expect: 100-continue)
// never sends it. The capacity of what is returned, with an error too, is taken from room and
// for the caller to give back.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, timeout time.Duration, room *share) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	// The deadline belongs to a socket and so counts in real time. A response writer without
	// deadlines leaves the matter to the server's own timeouts.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
	body, err := readUpTo(r.Body, r.ContentLength, limit, room)
	return body, bodyError(err)
}

// readUpTo reads a body that the server frames: one that is shorter than announced is its error. One
// byte beyond the limit tells that a body of unknown length is too large.
func readUpTo(r io.Reader, announced, limit int64, room *share) (body []byte, err error) {
	most := int(limit) + 1
	if announced >= 0 {
		most = int(announced)
	}
	for len(body) < most {
		if len(body) == cap(body) {
			if body, err = grow(body, most, room); err != nil {
				return body, err
			}
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
func grow(body []byte, most int, room *share) ([]byte, error) {
	size := min(most, max(trustedLength, 2*cap(body)))
	if !room.take(int64(size)) {
		return body, errCrowded
	}
	larger := make([]byte, len(body), size)
	copy(larger, body)
	room.give(int64(cap(body)))
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
