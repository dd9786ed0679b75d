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
		if err := stores[0].Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS charges (id TEXT)"); err != nil {
			t.Fatal(err)
		}
	}
	options := []hookonce.Option{hookonce.WithoutScope(), hookonce.WithWait(20 * time.Second), hookonce.WithLogger(slog.New(slog.DiscardHandler))}
	var runs atomic.Int64
	for name, make := range map[string]func(*sqlstore.Store) http.Handler{
		"transaction": func(s *sqlstore.Store) http.Handler {
			return hookonce.Idempotent(s, "idempotency", func(w http.ResponseWriter, r *http.Request, tx *sql.Tx) error {
				if _, err := tx.ExecContext(r.Context(), "INSERT INTO charges VALUES ('ch_1')"); err != nil {
					return err
				}
				_, err := fmt.Fprintf(w, "run %d", runs.Add(1))
				return err
			}, options...)
		},
		"lease": func(s *sqlstore.Store) http.Handler {
			return hookonce.IdempotentLease(s, "idempotency", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "run "+fmt.Sprint(runs.Add(1)))
			}), options...)
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
