package claimsql

import (
	"context"

	"github.com/hookonce/hookonce"
)

// Doomed is the name under which [Statements] has the texts for a kind.
func Doomed(kind hookonce.PurgeKind) string {
	switch kind {
	case "", hookonce.PurgeEvents, hookonce.PurgeOnce:
		return "done"
	}
	return string(kind)
}

// EachSource calls purge for each source that the request is about, one after the other, until it says that there is
// no room for more. Where rows have no sources, which a next of nil tells, it calls purge once, without one. So what a
// purge reads is what it deletes, however much of others is kept for longer. Next returns the first source after the
// given one; empty: there is none.
func EachSource(
	ctx context.Context, req hookonce.PurgeRequest, next func(after string) (string, error), purge func(source ...any) (more bool, err error),
) error {
	switch stored := req.Stored(); {
	case req.Limit <= 0:
		return ctx.Err()
	case next == nil:
		_, err := purge()
		return err
	case stored != "":
		_, err := purge(stored)
		return err
	}
	for source := ""; ; {
		var err error
		if source, err = next(source); err != nil || source == "" {
			return err
		}
		if !req.Covers(source) {
			continue
		}
		if more, err := purge(source); err != nil || !more {
			return err
		}
	}
}
