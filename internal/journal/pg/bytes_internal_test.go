package pg

import (
	"bytes"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// TestBytesReachTheServer sends arrays as they are encoded here and reads them back as pgx does.
func TestBytesReachTheServer(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := registerBytes(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][][]byte{
		nil, {}, {{}}, {nil}, {[]byte("a"), nil, {}, []byte("\x00\xff")}, {bytes.Repeat([]byte("long "), 100_000), []byte("b")},
	} {
		var got [][]byte
		if err := conn.QueryRow(t.Context(), "SELECT $1::bytea[]", want).Scan(&got); err != nil {
			t.Fatal(err)
		}
		same := slices.EqualFunc(got, want, func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })
		if !same || (got == nil) != (want == nil) {
			t.Errorf("sent %.50q, it came back as %.50q", want, got)
		}
	}
}
