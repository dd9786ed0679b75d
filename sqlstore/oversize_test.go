package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"github.com/hookonce/hookonce/internal/testskip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// An answer above max_allowed_packet is refused once, with the reason, and not 503 for ever: undone in a
// transaction, and answered 500 for good after an effect that cannot be undone. The server answers with various
// errors, or cuts the connection, depending on the size and on how the driver sends it.
func TestAnswerAboveMaxAllowedPacket(t *testing.T) {
	testskip.Long(t)
	dsn := mariadbtest.Durable(t)
	admin := opened(t, "mysql", dsn)
	exec(t, admin, "SET GLOBAL max_allowed_packet = 65536")
	for _, parameters := range []string{"", "?interpolateParams=true", "?maxAllowedPacket=0", "?maxAllowedPacket=32768&interpolateParams=true"} {
		db := opened(t, "mysql", dsn+parameters)
		_, err := schema.Migrate(t.Context(), db, schema.MySQL, schema.DefaultName)
		must(t, err)
		store := sqlstore.New(db, sqlstore.MySQL)
		for name, body := range map[string]string{
			"a little above":      strings.Repeat("x", 65_000),
			"far above":           strings.Repeat("x", 5_000_000),
			"above once escaped":  strings.Repeat("\x00", 40_000),
			"more than a message": strings.Repeat("x", 20_000_000),
		} {
			t.Run(parameters+" "+name, func(t *testing.T) { refusesAnswers(t, store, t.Name(), body) })
		}
	}
}

// refusesAnswers checks what is answered where the store takes no answer with that body.
func refusesAnswers(t *testing.T, store *sqlstore.Store, source, body string) {
	t.Helper()
	unscoped, large, quiet := hookonce.WithoutScope(), hookonce.WithMaxResponse(100<<20), hookonce.WithLogger(slog.New(slog.DiscardHandler))
	runs, long := 0, true
	write := func(w io.Writer) {
		runs++
		if long {
			_, _ = io.WriteString(w, body)
		}
	}
	undone := hookonce.Idempotent(store, source, func(w http.ResponseWriter, _ *http.Request, _ *sql.Tx) error { write(w); return nil }, unscoped, large, quiet)
	kept := hookonce.IdempotentLease(store, "lease "+source, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w) }), unscoped, large, quiet)
	for door, h := range map[string]http.Handler{"in a transaction": undone, "under a lease": kept} {
		runs, long = 0, true
		first := order(h, "10")
		wantTooLarge(t, door, first)
		long = false
		switch again := order(h, "10"); {
		case h == undone && (again.Code != 200 || runs != 2):
			t.Errorf("%s: the next answer was %d after %d runs", door, again.Code, runs)
		case h == kept && (again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" || runs != 1):
			t.Errorf("%s: the copy was answered %d %s after %d runs", door, again.Code, again.Body, runs)
		}
	}
}

func wantTooLarge(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != 500 || !strings.Contains(w.Body.String(), "answer-too-large") || w.Header().Get("Retry-After") != "" {
		t.Errorf("%s: answered %d %.200s", what, w.Code, w.Body)
	}
}

// SQLite says so itself.
func TestAnswerAboveTheLimitOfSQLite(t *testing.T) {
	db := opened(t, "sqlite3", "file:"+filepath.Join(t.TempDir(), "app.db"))
	db.SetMaxOpenConns(1)
	store := sqlstore.New(db, sqlstore.SQLite)
	_, err := schema.Migrate(t.Context(), db, schema.SQLite, schema.DefaultName)
	must(t, err)
	conn, err := db.Conn(t.Context())
	must(t, err)
	const limitLength = 0 // SQLITE_LIMIT_LENGTH, which the driver names only where it is built with cgo, as its method
	must(t, conn.Raw(func(c any) error {
		c.(interface{ SetLimit(id, to int) int }).SetLimit(limitLength, 100_000)
		return nil
	}))
	must(t, conn.Close())
	refusesAnswers(t, store, "sqlite", strings.Repeat("x", 200_000))
}

// Postgres takes no field of a gigabyte, and is not sent one. What the server itself says of a
// limit is told alike.
func TestAnswerAboveTheLimitOfPostgres(t *testing.T) {
	every(t, map[string]connection{"pgx": pgxStdlib}, func(t *testing.T, f fixture) {
		_, err := f.Within(t.Context(), request, func(tx *sql.Tx, c hookonce.Claim) error {
			return f.KeepResponse(context.WithoutCancel(t.Context()), tx, c.Ref, hookonce.Response{Status: 200, Body: make([]byte, 1<<30)})
		})
		if !errors.Is(err, hookonce.ErrResponseTooLarge) {
			t.Errorf("Within = %v", err)
		}
		exec(t, f.db, `CREATE FUNCTION `+f.tables+`refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE program_limit_exceeded; END'`,
			`CREATE TRIGGER refusal BEFORE INSERT ON `+f.tables+`responses FOR EACH ROW EXECUTE FUNCTION `+f.tables+`refuse()`)
		c, err := f.Claim(t.Context(), request)
		must(t, err)
		if err := f.CompleteWith(t.Context(), c, hookonce.Response{Status: 200}); !errors.Is(err, hookonce.ErrResponseTooLarge) {
			t.Errorf("CompleteWith = %v", err)
		}
	})
}

// An answer that fits is kept, to the last byte.
func TestAnswerBelowMaxAllowedPacket(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		body := bytes.Repeat([]byte("\x00'x"), 1<<20)
		c, err := f.Claim(t.Context(), request)
		must(t, err)
		must(t, f.CompleteWith(t.Context(), c, hookonce.Response{Status: 200, Body: body}))
		r, err := f.Response(t.Context(), request.Ref)
		must(t, err)
		if !bytes.Equal(r.Body, body) {
			t.Errorf("%d bytes came back", len(r.Body))
		}
	})
}

// opened is a pool of its own.
func opened(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}
