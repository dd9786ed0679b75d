package api

import (
	"encoding/base64"
	"encoding/binary"
	"testing"
)

// A replay that began before an upgrade goes on after it, with the cursor that it had.
func TestCursorOfVersion1(t *testing.T) {
	b := []byte{1}
	for _, n := range []uint64{7, 9} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	text := base64.RawURLEncoding.EncodeToString(append(b, sum(b, "replay")...))
	if c, err := decode(text, "replay", "body.cursor"); err != nil || c != (cursor{at: 7, audit: 9}) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := decode(text, "another", "body.cursor"); err == nil {
		t.Error("it is taken for another filter")
	}
	newer := cursor{at: 7, audit: 9, begun: 11}
	if c, err := decode(newer.encode("replay"), "replay", "body.cursor"); err != nil || c != newer {
		t.Errorf("%+v, %v", c, err)
	}
}
