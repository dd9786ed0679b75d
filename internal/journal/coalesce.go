package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/hookonce/hookonce"
)

// The keys of events that coalesce. None that was extracted begins like them: [hookonce.NormalKey]
// replaces those that begin with sha256: by their digest.
const (
	coalescing      = "sha256:coalesce"
	coalescingPlain = coalescing + ":" // the key follows
	coalescingHash  = coalescing + "#" // its SHA-256 follows
)

// CoalesceKey returns the key under which an event is stored that only says that something changed. It
// adds nothing while an earlier one under the key waits for its delivery, and is new once that has begun:
// the destination may have looked before the change.
//
// Events come and go under such a key, so it identifies none of them, and is no idempotency key.
func CoalesceKey(key string) string {
	if key == "" {
		return ""
	}
	if len(coalescingPlain)+len(key) <= hookonce.MaxKeyLen {
		return coalescingPlain + key
	}
	sum := sha256.Sum256([]byte(key))
	return coalescingHash + hex.EncodeToString(sum[:])
}

// Coalesces reports whether a key is a [CoalesceKey].
func Coalesces(key string) bool {
	return strings.HasPrefix(key, coalescingPlain) || strings.HasPrefix(key, coalescingHash)
}
