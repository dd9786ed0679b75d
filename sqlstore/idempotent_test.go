package sqlstore_test

import (
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
	_ "modernc.org/sqlite"
)

// A hundred first requests at once, over two stores on one SQLite file as two processes have them: one run,
// and one answer for all, in a transaction and under a lease.
func TestIdempotentManyAtOnceOnSQLite(t *testing.T) {
	file := "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)"
	var stores []*sqlstore.Store
	for range 2 {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		stores = append(stores, sqlstore.New(db, sqlstore.SQLite))
		if _, err := schema.Migrate(t.Context(), db, schema.SQLite, schema.DefaultName); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS charges (id TEXT)"); err != nil {
			t.Fatal(err)
		}
	}
	unscoped, wait, quiet := hookonce.WithoutScope(), hookonce.WithWait(20*time.Second), hookonce.WithLogger(slog.New(slog.DiscardHandler))
	var runs atomic.Int64
	for name, make := range map[string]func(*sqlstore.Store) http.Handler{
		"transaction": func(s *sqlstore.Store) http.Handler {
			return hookonce.Idempotent(s, "idempotency", func(w http.ResponseWriter, r *http.Request, tx *sql.Tx) error {
				if _, err := tx.ExecContext(r.Context(), "INSERT INTO charges VALUES ('ch_1')"); err != nil {
					return err
				}
				_, err := fmt.Fprintf(w, "run %d", runs.Add(1))
				return err
			}, unscoped, wait, quiet)
		},
		"lease": func(s *sqlstore.Store) http.Handler {
			return hookonce.IdempotentLease(s, "idempotency", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "run "+fmt.Sprint(runs.Add(1)))
			}), unscoped, wait, quiet)
		},
	} {
		t.Run(name, func(t *testing.T) {
			runs.Store(0)
			handlers := []http.Handler{make(stores[0]), make(stores[1])}
			var senders sync.WaitGroup
			for i := range 100 {
				senders.Go(func() {
					r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader("10"))
					r.Header.Set("Idempotency-Key", name)
					w := httptest.NewRecorder()
					handlers[i%2].ServeHTTP(w, r)
					if w.Code != 200 || w.Body.String() != "run 1" {
						t.Errorf("answered %d %s", w.Code, w.Body)
					}
				})
			}
			senders.Wait()
		})
	}
}

// A handler that declines undoes its rows, and its answer is that of every copy.
func TestIdempotentRollback(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		runs := 0
		h := hookonce.Idempotent(f.Store, "idempotency", func(w http.ResponseWriter, r *http.Request, tx *sql.Tx) error {
			if _, err := tx.ExecContext(r.Context(), "INSERT INTO "+f.tables+"happened VALUES ('ch_1')"); err != nil {
				return err
			}
			runs++
			w.WriteHeader(http.StatusPaymentRequired)
			fmt.Fprintf(w, "declined by run %d", runs)
			return hookonce.ErrRollback
		}, hookonce.WithoutScope(), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
		for range 2 {
			if w := order(h, "10"); w.Code != 402 || w.Body.String() != "declined by run 1" {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
		}
		if happened, err := testdb.Happened(t.Context(), f.db, f.tables); err != nil || len(happened) > 0 {
			t.Errorf("happened: %v, %v", happened, err)
		}
	})
}

// order sends a request under a key.
func order(h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", "k1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
