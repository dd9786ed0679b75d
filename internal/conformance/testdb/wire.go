package testdb

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
)

// Messages reads what a client of Postgres sends. A message begins with its type, which only the first lacks, and its
// length, which counts itself.
func Messages(client io.Reader) cutproxy.Reader {
	header := 4
	return func() ([]byte, bool, error) {
		message, request := make([]byte, header), header == 5
		if _, err := io.ReadFull(client, message); err != nil {
			return nil, false, err
		}
		body := make([]byte, binary.BigEndian.Uint32(message[header-4:])-4)
		_, err := io.ReadFull(client, body)
		header = 5
		return append(message, body...), request, err
	}
}

// IsCommit recognises COMMIT, sent with its text: prepared, or by database/sql as a simple query.
func IsCommit(message []byte) bool {
	return message[0] == 'P' && bytes.Contains(message, []byte("\x00commit\x00")) || message[0] == 'Q' && bytes.HasSuffix(message, []byte("commit\x00"))
}

// IsSync recognises the end of a pipeline, which commits what came before it unless there was BEGIN.
func IsSync(message []byte) bool { return message[0] == 'S' }

// IsWrite recognises a statement over the table of claims that writes, sent with its text.
func IsWrite(message []byte) bool {
	return message[0] == 'P' && (bytes.Contains(message, []byte("INSERT INTO")) || bytes.Contains(message, []byte("UPDATE")) ||
		bytes.Contains(message, []byte("DELETE FROM")))
}
