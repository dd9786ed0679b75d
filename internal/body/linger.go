package body

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// How long what is left of a refused body is read and thrown away, and how many bytes of it at the most.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 32 << 20
)

// Linger has a sender receive the answer to a body that it has not sent to its end. Many senders read nothing before
// they have written everything, and a connection that is closed before that takes the answer with it (RFC 9112,
// section 9.6). The answer must have been written, with its length and Connection: close.
func Linger(w http.ResponseWriter, r *http.Request) {
	socket := http.NewResponseController(w)
	if socket.Flush() != nil || socket.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	n, err := io.CopyBuffer(nowhere{}, io.LimitReader(r.Body, lingerBytes), make([]byte, 512))
	if err == nil && n < lingerBytes || errors.Is(err, io.ErrUnexpectedEOF) {
		return // nothing more comes
	}
	HangUp(w) // there is more, or what framed it cannot be read any further
}

// HangUp has the server end its side of the connection after the answer and wait a little for the sender to read it,
// as it does for a body beyond a limit of its own.
func HangUp(w http.ResponseWriter) {
	_, _ = http.MaxBytesReader(w, endless{}, 0).Read(make([]byte, 1))
}

// nowhere takes what is written to it, with no buffer of its own.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }
