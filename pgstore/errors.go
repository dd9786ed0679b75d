package pgstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes, from PostgreSQL's manual, appendix A.
const (
	lockNotAvailable     = "55P03"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	invalidSchemaName    = "3F000"
	connectionClass      = "08"
)

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isLockTimeout reports whether the bounded wait for another transaction ran out.
func isLockTimeout(err error) bool { return sqlState(err) == lockNotAvailable }

// isSerialization reports whether the server gave up a transaction for another one's sake. Nothing
// was written, and trying again may work.
func isSerialization(err error) bool {
	code := sqlState(err)
	return code == serializationFailure || code == deadlockDetected
}

// explain adds what to do to an error of one of the store's own statements, which name nothing but
// the store's own table.
func explain(err error) error {
	switch sqlState(err) {
	case undefinedTable, undefinedColumn, invalidSchemaName:
		return fmt.Errorf("%w: run `hookonce migrate`, or call Store.Migrate: %w", hookonce.ErrSchemaMissing, err)
	}
	return err
}

// isRefusal reports whether err is the server's word that it did not carry out a COMMIT, and lives on.
// A server that dies during a commit may have finished it, and a pooler that lost its server does not
// know.
func isRefusal(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	severity := e.SeverityUnlocalized
	if severity == "" {
		severity = e.Severity
	}
	return severity == "ERROR" && !strings.HasPrefix(e.Code, connectionClass)
}
