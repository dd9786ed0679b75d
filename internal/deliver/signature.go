package deliver

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/hookonce/hookonce/internal/outgoing"
)

// keys reads the secrets. Errors do not repeat them.
func (d *destination) keys(secrets []string) (err error) {
	d.secrets, err = outgoing.Keys(secrets)
	return err
}

// messageID names a message: an event on its way to one destination. It is the same for every attempt,
// in every process, because it is made of the Idempotency-Key.
func messageID(idempotencyKey, destination string) string {
	sum := sha256.Sum256([]byte(idempotencyKey + " " + destination)) // a key has no space
	return "msg_" + hex.EncodeToString(sum[:16])
}
