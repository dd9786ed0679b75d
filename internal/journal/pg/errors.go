package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgerror"
)

// failed says of an error what failed. There being no such event is an answer.
func failed(what string, err error) error {
	if err == nil || errors.Is(err, journal.ErrNoEvent) {
		return err
	}
	return fmt.Errorf("journal/pg: %s: %w", what, err)
}

// maxTries bounds how often a transaction is tried that the server rolled back for others' sake.
const maxTries = 5

// retry runs a transaction again when it certainly left no trace and may well succeed: the server
// says that it rolled it back in favour of another (deadlock, serialization failure), or a partition was
// made for a row that was on its way to the default one. A broken
// connection is not such a case, whatever the driver believes about what was sent: the transaction
// may have been committed, and trying it again would take its own rows for copies.
func (s *Store) retry(ctx context.Context, what string, tx func() error) error {
	for try := 1; ; try++ {
		err := tx()
		switch {
		case err == nil:
			return nil
		case try == maxTries || ctx.Err() != nil || !retryable(err):
			return failed(what, err)
		}
		s.log.DebugContext(ctx, "journal/pg: trying again", "what", what, "try", try, "error", err)
	}
}

func retryable(err error) bool {
	var e *pgconn.PgError
	outOfPartition := errors.As(err, &e) && e.Code == "23514" && e.ConstraintName == "" // check_violation
	return outOfPartition || pgerror.LostRace(err)
}

// rowRefused reports whether err is about the content of some row: trying the other rows makes
// sense. The classes are data exceptions, constraints, views with check options, sizes beyond a
// limit of the server, and what triggers raise.
func rowRefused(err error) bool {
	c := pgerror.State(err)
	return len(c) == 5 && slices.Contains([]string{"22", "23", "44", "54", "09", "38", "39", "P0"}, c[:2])
}

// sizeInDSN reports whether the connection string sets pool_max_conns, which the pool's own
// configuration does not tell apart from its default.
func sizeInDSN(dsn string) bool {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return false
	}
	_, ok := cfg.RuntimeParams["pool_max_conns"]
	return ok
}
