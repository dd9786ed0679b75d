package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// errOvertaken says that other workers changed the row in every round of the claiming statement.
var errOvertaken = errors.New("sqlstore: other workers kept changing the claim")

// Pauses between tries grow from the one to the other.
const (
	firstPause = time.Millisecond
	lastPause  = 25 * time.Millisecond
)

// insist runs op until it gets its turn, for at most the store's bounded wait. It returns op's last
// error, or that of ctx if it ended meanwhile.
func (s *Store) insist(ctx context.Context, op func() error) error {
	err := op()
	if s.dialect.contended(err) != again {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for p := firstPause; s.dialect.contended(err) == again && pause(patience, p); p = min(2*p, lastPause) {
		err = op()
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w while %w", context.Cause(ctx), err)
	}
	return err
}

// pause waits for d and reports whether ctx still runs.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// busy reports whether err means that others were in the way to the end of the bounded wait.
func (s *Store) busy(err error) bool {
	return err != nil && (errors.Is(err, errOvertaken) || s.dialect.contended(err) != uncontended)
}

// numberIn returns the integer in a driver's error under the name of a field, or 0. It is how to read the
// code of drivers that have no method for it, without importing them.
func numberIn(err error, field string) int {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		switch number := v.FieldByName(field); {
		case !number.IsValid():
		case number.CanInt():
			return int(number.Int())
		case number.CanUint():
			return int(number.Uint())
		}
	}
	return 0
}

// never is for databases that have no such error.
func never(error) bool { return false }
