package ingest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// trustedLength is up to which announced length memory is set aside before the bytes arrive. Above
// it the buffer grows with what was received, so that announcing much and sending little costs the
// sender more than us.
const trustedLength = 64 << 10

// readBody returns the raw body of at most limit bytes, or a refusal. A body that is announced as
// larger is refused before any of it is read, so that a sender that asks first (Expect: 100-continue)
// never sends it.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, timeout time.Duration) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	// The deadline belongs to a socket and so counts in real time. A response writer without
	// deadlines leaves the matter to the server's own timeouts.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
	body, err := readUpTo(r.Body, r.ContentLength, limit)
	return body, bodyError(err)
}

// readUpTo reads a body that the server frames: one that is shorter than announced is its error.
func readUpTo(r io.Reader, announced, limit int64) ([]byte, error) {
	if announced >= 0 && announced <= trustedLength {
		body := make([]byte, announced)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = errTooLarge
	}
	return b.Bytes(), err
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
