// Package pgerror reads PostgreSQL's errors, whichever driver brings them: pgx, or lib/pq.
package pgerror

import (
	"errors"
	"reflect"
	"strings"
)

// State returns the SQLSTATE that the server answered with, or "" if it did not.
func State(err error) string {
	state, _ := read(err)
	return state
}

// What a statement was answered with. The codes are those of appendix A of PostgreSQL's manual,
// https://www.postgresql.org/docs/current/errcodes-appendix.html.

// LockTimeout reports whether a bounded wait for another transaction ran out.
func LockTimeout(err error) bool { return State(err) == "55P03" } // lock_not_available

// LostRace reports whether the server gave up the transaction for another one's sake. Nothing was written, and
// trying again may work.
func LostRace(err error) bool {
	state := State(err)
	return state == "40001" || state == "40P01" // serialization_failure, deadlock_detected
}

// Unmigrated reports whether a table or a column is missing, of a statement that names nothing but tables of ours.
func Unmigrated(err error) bool {
	state := State(err)
	return state == "42P01" || state == "42703" || state == "3F000" // undefined_table, undefined_column, invalid_schema_name
}

// TooLarge reports whether a value is larger than the server takes.
func TooLarge(err error) bool { return strings.HasPrefix(State(err), "54") } // program_limit_exceeded

// InvalidText reports whether a text was not one of the type that it was cast to.
func InvalidText(err error) bool { return State(err) == "22P02" } // invalid_text_representation

// FailedTransaction reports whether the transaction can only be rolled back, because an earlier statement failed.
func FailedTransaction(err error) bool { return State(err) == "25P02" } // in_failed_sql_transaction

// ReadOnly reports whether the server takes no writes: it is a standby, or was made read-only. The statement did nothing,
// and another server may take it.
func ReadOnly(err error) bool { return State(err) == "25006" } // read_only_sql_transaction

// NotCommitted reports whether err, which COMMIT was answered with, is the server's word that nothing was
// committed. Any other error leaves the outcome unknown.
//
// What fails before the commit record is written is an ERROR, and the transaction is rolled back, whatever the
// code: a serialization failure, a deferred constraint, a statement_timeout in a deferred trigger (57014), a
// full disk or an internal error there (58030, XX000). Once the record is written the server cannot fail the
// transaction any more: it panics (CommitTransaction and AbortTransaction in
// https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/access/transam/xact.c), and a wait for a
// standby that is cancelled is a warning (SyncRepWaitForLSN in
// https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/replication/syncrep.c). So FATAL and PANIC
// say nothing: the process died, before the record or after it. Nor do some codes, whatever they are called:
// class 08 comes from poolers that lost their server, 57P01 and those that follow from a server that goes down,
// and 40003 (statement_completion_unknown) says so itself; Postgres never sends it, servers that speak its
// protocol do. https://www.postgresql.org/docs/current/errcodes-appendix.html
//
// A severity in another language, which lib/pq passes on as it is, leaves the code to tell.
func NotCommitted(err error) bool {
	state, severity := read(err)
	switch {
	case state == "", state == "40003", strings.HasPrefix(state, "08"), strings.HasPrefix(state, "57P"):
		return false
	case severity == "ERROR":
		return true
	case severity == "FATAL", severity == "PANIC":
		return false
	}
	switch state[:2] {
	case "57", "58", "XX": // operator intervention, system error, internal error
		return false
	}
	return true
}

// read returns the code and the severity of the server's answer. Drivers agree on a method for the one, and on a
// field for the other, which may be in the language of the server where there is no other.
func read(err error) (state, severity string) {
	var answer interface {
		error
		SQLState() string
	}
	if !errors.As(err, &answer) {
		return "", ""
	}
	v := reflect.Indirect(reflect.ValueOf(answer))
	for _, name := range []string{"SeverityUnlocalized", "Severity"} {
		if v.Kind() != reflect.Struct {
			break
		}
		if f := v.FieldByName(name); f.IsValid() && f.Kind() == reflect.String && f.String() != "" {
			severity = f.String()
			break
		}
	}
	return answer.SQLState(), severity
}
