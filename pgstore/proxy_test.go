package pgstore_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/url"
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
)

// newProxy starts a proxy and returns it with the connection string that leads through it.
func newProxy(t testing.TB, dsn string) (*cutproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := cutproxy.New(t, u.Host, messages)
	u.Host = p.Addr()
	return p, u.String()
}

// messages reads what a client of Postgres sends. A message begins with its type, which only the first lacks, and its
// length, which counts itself.
func messages(client io.Reader) cutproxy.Reader {
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

// isCommit recognises COMMIT, sent with its text: prepared, or by database/sql as a simple query.
func isCommit(message []byte) bool {
	return message[0] == 'P' && bytes.Contains(message, []byte("\x00commit\x00")) || message[0] == 'Q' && bytes.HasSuffix(message, []byte("commit\x00"))
}

// isWrite recognises a statement over the table of claims that writes, sent with its text.
func isWrite(message []byte) bool {
	return message[0] == 'P' && (bytes.Contains(message, []byte("INSERT INTO")) || bytes.Contains(message, []byte("UPDATE")) ||
		bytes.Contains(message, []byte("DELETE FROM")))
}
