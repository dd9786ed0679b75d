package hookonce

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// EffectKey returns the key under which one step of the work under ref is known to others: the same for
// every attempt, in every process and release, and another one for another source, key or step. It is
// what to send as Idempotency-Key where [Transport] does not: 32 hexadecimal digits, made of the first
// half of the SHA-256 of [JoinKey] over source, key and step. It is empty if one of the three is: what
// cannot be recognised has no key.
func EffectKey(ref Ref, step string) string {
	joined := JoinKey(ref.Source, ref.Key, step)
	if joined == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(joined))
	return hex.EncodeToString(sum[:sha256.Size/2])
}

// IdempotencyKey returns the key under which the effect is known to whoever carries it out, the same for
// every attempt: the [EffectKey] of its reference and step. An effect that was asked for by something
// without a key is told apart by its number and the time at which it was enqueued, because other outboxes
// count from 1, too.
func (e QueuedEffect) IdempotencyKey() string {
	ref := e.Ref
	if ref.Key == "" {
		ref.Key = JoinKey("effect", strconv.FormatInt(e.ID, 10), strconv.FormatInt(e.EnqueuedAt.UnixMicro(), 10))
	}
	return EffectKey(ref, cmp.Or(e.Step, e.Name))
}
