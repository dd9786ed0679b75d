package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// cursor says where a list or a replay goes on. Clients pass it back as they got it.
type cursor struct {
	at    int64 // an event, or an entry of the audit log
	audit int64 // of a replay; 0: of none
	begun int64 // when a replay began that leaves alone what was done since, in microseconds; 0: none
}

// The parts of an encoded cursor: a version, the numbers, and a sum that ties it to what it belongs to.
const (
	cursorVersion = 2
	cursorSum     = 8
	cursorSize    = 1 + 3*8 + cursorSum
	cursorSize1   = 1 + 2*8 + cursorSum // of version 1, which has no begun: somebody may go on with one after an upgrade
)

// encode returns the cursor of the question that context describes.
func (c cursor) encode(context string) string {
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(c.at))
	b = binary.BigEndian.AppendUint64(b, uint64(c.audit))
	b = binary.BigEndian.AppendUint64(b, uint64(c.begun))
	return base64.RawURLEncoding.EncodeToString(append(b, sum(b, context)...))
}

// sum recognises cursors that were cut, changed by accident, or belong to another question. It proves
// nothing about who made them, and need not: a cursor grants nothing.
func sum(numbers []byte, context string) []byte {
	h := sha256.New()
	h.Write(numbers)
	h.Write([]byte(context))
	return h.Sum(nil)[:cursorSum]
}

// decode reads a cursor, empty for the beginning. location names the field that it came in.
func decode(text, context, location string) (c cursor, err error) {
	if text == "" {
		return cursor{}, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 || len(b) != map[byte]int{1: cursorSize1, cursorVersion: cursorSize}[b[0]] {
		return cursor{}, invalid(location, "this is not a cursor; pass the one of the last answer as it is, or none", text)
	}
	numbers := b[:len(b)-cursorSum]
	if string(sum(numbers, context)) != string(b[len(numbers):]) {
		return cursor{}, invalid(location, "this cursor belongs to another filter; pass the same fields as before, or no cursor", text)
	}
	c.at = int64(binary.BigEndian.Uint64(numbers[1:]))
	c.audit = int64(binary.BigEndian.Uint64(numbers[9:]))
	if b[0] > 1 {
		c.begun = int64(binary.BigEndian.Uint64(numbers[17:]))
	}
	return c, nil
}
