package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
)

// fields are the destinations for the columns of a claim, in the order of claimColumns.
func fields(c *hookonce.Claim) []any {
	return []any{
		&c.State, &c.Token, stamp{&c.Lease}, &c.Type, &c.Digest,
		stamp{&c.FirstSeen}, stamp{&c.UpdatedAt}, &c.LastError, &c.Pinned,
	}
}

// stamp scans a time in the form of any dialect; null is the zero time.
type stamp struct{ to *time.Time }

// Scan implements [sql.Scanner].
func (s stamp) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*s.to = time.Time{}
	case int64:
		*s.to = time.UnixMicro(v).UTC()
	case []byte: // a number that the driver leaves as the server wrote it
		micros, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return fmt.Errorf("sqlstore: a time came back as %q: %w", v, err)
		}
		*s.to = time.UnixMicro(micros).UTC()
	case time.Time:
		*s.to = v.UTC()
	default:
		return fmt.Errorf("sqlstore: a time came back as %T", src)
	}
	return nil
}

// row is a row of the outbox.
type row struct {
	hookonce.QueuedEffect
	due time.Time // while it is processing: when the lease ends
}

// fields are the destinations for effectColumns.
func (r *row) fields() []any {
	return []any{
		&r.ID, &r.Source, &r.Key, &r.Step, &r.Name, &r.Payload, &r.State, &r.Token, &r.Tries, &r.Deaths,
		stamp{&r.due}, stamp{&r.EnqueuedAt}, &r.LastError,
	}
}

// effect returns the row as callers get it.
func (r *row) effect() hookonce.QueuedEffect {
	if r.State == hookonce.StateProcessing {
		r.Lease = r.due
	} else {
		r.Due = r.due
	}
	return r.QueuedEffect
}

// effects runs a query for rows of the outbox.
func effects(ctx context.Context, q querier, s statement, args ...any) ([]hookonce.QueuedEffect, error) {
	var found []hookonce.QueuedEffect
	err := each(ctx, q, s, args, func(scan func(...any) error) error {
		var r row
		if err := scan(r.fields()...); err != nil {
			return err
		}
		found = append(found, r.effect())
		return nil
	})
	return found, err
}

// digest is a digest in the form of every dialect: none is null.
func digest(d []byte) any {
	if len(d) == 0 {
		return nil
	}
	return d
}

// instant returns t in the resolution that databases keep.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// micros is the form of times in databases that have none that is good enough.
func micros(t time.Time) any { return t.UnixMicro() }
