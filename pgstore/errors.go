package pgstore

import (
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/hookonce/hookonce/internal/schema"
)

// SQLSTATE codes, from PostgreSQL's manual, appendix A.
const (
	lockNotAvailable     = "55P03"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	undefinedTable       = "42P01"
	invalidText          = "22P02"
	undefinedColumn      = "42703"
	invalidSchemaName    = "3F000"
)

// isLockTimeout reports whether the bounded wait for another transaction ran out.
func isLockTimeout(err error) bool { return pgerror.State(err) == lockNotAvailable }

// isSerialization reports whether the server gave up a transaction for another one's sake. Nothing
// was written, and trying again may work.
func isSerialization(err error) bool {
	code := pgerror.State(err)
	return code == serializationFailure || code == deadlockDetected
}

// explain adds what to do to an error of one of the store's own statements, which name nothing but
// the store's own table.
func explain(err error) error {
	switch pgerror.State(err) {
	case undefinedTable, undefinedColumn, invalidSchemaName:
		return schema.Missing(schema.Postgres, err)
	}
	return err
}
