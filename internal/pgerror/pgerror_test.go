package pgerror_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// Both drivers' errors are judged alike, and only the server's word that it lives on and did not commit counts.
func TestNotCommitted(t *testing.T) {
	for _, tt := range []struct {
		state, severity string
		want            bool
	}{
		{"23503", "ERROR", true}, // a deferred constraint
		{"40001", "ERROR", true},
		{"57014", "ERROR", true}, // statement_timeout in a deferred trigger
		{"58030", "ERROR", true}, // before the commit record; after it the server panics
		{"XX000", "ERROR", true},
		{"53100", "PANIC", false},
		{"57P01", "FATAL", false},
		{"XX000", "FATAL", false},
		{"40003", "ERROR", false},
		{"08006", "ERROR", false},
		{"08P01", "FATAL", false}, // PgBouncer that lost its server
		{"57P01", "ERROR", false},
		{"23503", "FEHLER", true},
		{"57014", "FEHLER", false},
		{"58030", "FEHLER", false},
		{"XX000", "FEHLER", false},
	} {
		for driver, err := range map[string]error{
			"pgx": &pgconn.PgError{Code: tt.state, Severity: tt.severity},
			"pq":  &pq.Error{Code: pqerror.Code(tt.state), Severity: tt.severity},
		} {
			err = fmt.Errorf("commit: %w", err)
			if got := pgerror.NotCommitted(err); got != tt.want || pgerror.State(err) != tt.state {
				t.Errorf("%s, %s %s: %v, %s; want %v", driver, tt.severity, tt.state, got, pgerror.State(err), tt.want)
			}
		}
	}
	if err := errors.New("connection reset by peer"); pgerror.NotCommitted(err) || pgerror.State(err) != "" {
		t.Error("an error that the server did not send was taken for its word")
	}
	if !pgerror.NotCommitted(&pgconn.PgError{Code: "57014", Severity: "FEHLER", SeverityUnlocalized: "ERROR"}) {
		t.Error("the severity that is in no language was not read")
	}
}
