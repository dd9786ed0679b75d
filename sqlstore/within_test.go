package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/sqlstore"
)

// fixture is a store over a fresh database, reached in one of the ways of connections.
type fixture struct {
	*sqlstore.Store
	db     *sql.DB
	open   func() *sql.DB // further pools on the same database
	tables string         // what stands before the names of tables
}

// every runs the test over the connections.
func every(t *testing.T, connections map[string]connection, test func(t *testing.T, f fixture)) {
	for name, c := range connections {
		t.Run(name, func(t *testing.T) {
			p := c.places(t)(t)
			open := func() *sql.DB { return c.Open(t, p.DSN, new(testdb.Faults)) }
			db := open()
			tables := c.Create(t, db, p)
			s := sqlstore.New(db, c.Dialect, sqlstore.WithSchema(p.Schema), sqlstore.WithWait(200*time.Millisecond))
			test(t, fixture{s, db, open, tables})
		})
	}
}

func sqliteConnections() map[string]connection {
	return map[string]connection{"modernc": modernc, "mattn": mattn}
}

func postgresConnections() map[string]connection {
	return map[string]connection{"pgx": pgxStdlib, "pq": libpq}
}

func mysqlConnections() map[string]connection {
	return map[string]connection{"mysql": goMySQL, "mysql, prepared": preparedMySQL}
}

func connections() map[string]connection {
	all := map[string]connection{}
	for _, some := range []map[string]connection{sqliteConnections(), postgresConnections(), mysqlConnections()} {
		maps.Copy(all, some)
	}
	return all
}

var request = hookonce.ClaimRequest{
	Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Digest: []byte("one"), Lease: time.Minute,
}

var errDeclined = errors.New("card declined")

// within runs the statements in the transaction of the claim.
func (f fixture) within(t testing.TB, statements ...string) (hookonce.Claim, error) {
	return f.Within(t.Context(), request, func(tx *sql.Tx, _ hookonce.Claim) error {
		for _, s := range statements {
			if _, err := tx.ExecContext(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
}

// left checks what is stored in the end.
func (f fixture) left(t testing.TB, state hookonce.State, message string) {
	t.Helper()
	c, err := f.Lookup(t.Context(), request.Ref)
	must(t, err)
	if c.State != state || !strings.Contains(c.LastError, message) {
		t.Fatalf("stored claim is %s with %q, want %s with %q", c.State, c.LastError, state, message)
	}
}

// A constraint that is checked at the commit makes the database refuse it. That is an answer: the
// attempt failed, and says so in the table.
func TestARefusedCommitIsAFailedAttempt(t *testing.T) {
	deferring := connections()
	maps.DeleteFunc(deferring, func(_ string, c connection) bool { return c.Dialect == sqlstore.MySQL }) // has no such constraints
	every(t, deferring, func(t *testing.T, f fixture) {
		exec(t, f.db, `CREATE TABLE `+f.tables+`invoices (id INTEGER PRIMARY KEY)`,
			`CREATE TABLE `+f.tables+`payments (invoice INTEGER REFERENCES `+f.tables+`invoices DEFERRABLE INITIALLY DEFERRED)`)
		_, err := f.within(t, `INSERT INTO `+f.tables+`payments (invoice) VALUES (7)`)
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Fatalf("error is %v, want a refusal", err)
		}
		f.left(t, hookonce.StateFailed, "refused")
	})
}

// When the trace cannot be written the caller hears of it, and of the handler's error as well.
func TestALostTraceIsReported(t *testing.T) {
	lose := map[string]string{
		"modernc": `CREATE TRIGGER lose BEFORE INSERT ON hookonce_claims WHEN new.state = 'failed' BEGIN SELECT RAISE(ABORT, 'lost'); END`,
		"pgx":     `ALTER TABLE "case_1".claims ADD CONSTRAINT lose CHECK (state <> 'failed')`,
	}
	lose["mattn"], lose["pq"] = lose["modernc"], lose["pgx"]
	lose["mysql"] = `ALTER TABLE case_1_claims ADD CONSTRAINT lose CHECK (state <> 'failed')`
	lose["mysql, prepared"] = lose["mysql"]
	for name, c := range connections() {
		every(t, map[string]connection{name: c}, func(t *testing.T, f fixture) {
			exec(t, f.db, lose[name])
			_, err := f.Within(t.Context(), request, func(*sql.Tx, hookonce.Claim) error { return errDeclined })
			if !errors.Is(err, hookonce.ErrTraceLost) || !errors.Is(err, errDeclined) {
				t.Fatalf("error is %v, want ErrTraceLost and the handler's error", err)
			}
			if _, err := f.Lookup(t.Context(), request.Ref); !errors.Is(err, hookonce.ErrNotFound) {
				t.Fatalf("Lookup: %v, want ErrNotFound", err)
			}
		})
	}
}

// A handler that goes on after its context has ended, for ever perhaps, loses its transaction, and so the key.
func TestHandlerThatNeverReturnsLosesTheKey(t *testing.T) {
	every(t, map[string]connection{"mattn": mattn, "modernc": modernc, "pgx": pgxStdlib, "pq": libpq, "mysql": goMySQL}, func(t *testing.T, f fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		gate, wrote, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}}
		go func() {
			_, err := f.Within(ctx, req, func(*sql.Tx, hookonce.Claim) error {
				close(wrote)
				cancel()
				<-gate
				return nil
			})
			result <- err
		}()
		<-wrote
		c, err := f.Within(t.Context(), req, func(*sql.Tx, hookonce.Claim) error { return nil })
		if err != nil || c.Verdict != hookonce.Acquired {
			t.Errorf("another is told %v, %v", c.Verdict, err)
		}
		close(gate)
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("the first was told %v", err)
		}
		if c, err := f.Lookup(t.Context(), req.Ref); err != nil || c.State != hookonce.StateDone {
			t.Errorf("the claim is %+v, %v", c, err)
		}
	})
}
