package deliver

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// maxIdempotencyKey is the length, in bytes, that receivers commonly store.
const maxIdempotencyKey = 255

// idempotencyKey is the same for every attempt at an event and for no other event:
//
//	billing:evt_1              a key in its source
//	billing#81985529216486895  an event without a key, or with one that others take over, by its
//	                           identifier in the journal
//	#5f2b...                   the SHA-256 of one of these that is longer than 255 bytes
//
// The source has neither : nor # in this form, so the first of them tells which it is.
func idempotencyKey(w *journal.Work) string {
	source := outgoing.Escape(w.Source, ":#")
	var key string
	if w.Key != "" && !journal.Coalesces(w.Key) {
		key = source + ":" + outgoing.HeaderSafe(w.Key)
	} else {
		key = source + "#" + strconv.FormatInt(w.EventID, 10)
	}
	if len(key) > maxIdempotencyKey {
		sum := sha256.Sum256([]byte(key))
		key = "#" + hex.EncodeToString(sum[:])
	}
	return key
}

// messageID names a message: an event on its way to one destination. It is the same for every attempt,
// in every process, because it is made of the Idempotency-Key.
func messageID(idempotencyKey, destination string) string {
	sum := sha256.Sum256([]byte(idempotencyKey + " " + destination)) // a key has no space
	return "msg_" + hex.EncodeToString(sum[:16])
}
