package pgstore

import (
	"bytes"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// record is a row of the table as a statement returns it.
type record struct {
	state, eventType, lastError string
	token, pinned               int64
	lease                       *time.Time
	digest                      []byte
	firstSeen, updatedAt        time.Time
}

// fields are the places to scan columns into.
func (r *record) fields() []any {
	return []any{&r.state, &r.token, &r.lease, &r.eventType, &r.digest, &r.firstSeen, &r.updatedAt, &r.lastError, &r.pinned}
}

func (r *record) claim(ref hookonce.Ref) hookonce.Claim {
	c := hookonce.Claim{
		Ref: ref, State: hookonce.State(r.state), Token: r.token, Type: r.eventType, Digest: r.digest,
		FirstSeen: r.firstSeen.UTC(), UpdatedAt: r.updatedAt.UTC(), LastError: r.lastError,
		Pinned: r.pinned,
	}
	if r.lease != nil {
		c.Lease = r.lease.UTC()
	}
	return c
}

// deadline returns when a lease of d that begins now ends; nil: never.
func deadline(now time.Time, d time.Duration) *time.Time {
	if d == 0 {
		return nil
	}
	t := instant(now.Add(d))
	return &t
}

// differ reports whether both digests are known and not equal.
func differ(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && !bytes.Equal(a, b) }

// known returns nil for an empty digest, which the table keeps as null.
func known(digest []byte) []byte {
	if len(digest) == 0 {
		return nil
	}
	return digest
}

// storable returns text without what the database refuses. An event's type is only for people who
// look at the table: a strange one must not make the event impossible to handle.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}
