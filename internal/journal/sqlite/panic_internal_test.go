package sqlite

import (
	"database/sql/driver"
	"path/filepath"
	"testing"
)

// TestStoreSurvivesPanics: net/http survives a handler that panics, so what one did inside a transaction
// must be taken back, and the next must find the connection free; also when it was reading.
func TestStoreSurvivesPanics(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	panics := func(f func(w *writer)) {
		t.Helper()
		defer func() { _ = recover() }()
		err := s.write(t.Context(), "panicking", func(w *writer) error {
			if _, err := w.once(s.in(`INSERT INTO {{.}}pauses (destination, paused_at, paused_by, reason) VALUES ('app', 0, '', '')`)); err != nil {
				t.Error(err)
			}
			f(w)
			return nil
		})
		t.Errorf("instead of a panic: %v", err)
	}
	panics(func(*writer) { panic("between statements") })
	panics(func(w *writer) {
		_ = w.lastID.query(func([]driver.Value) error { panic("in a row") })
	})
	panics(func(w *writer) {
		_ = w.with(`SELECT 1 UNION ALL SELECT 2`, func(p *stmt) error {
			return p.query(func([]driver.Value) error { panic("in a row of a statement that is not kept") })
		})
	})
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("nothing can be written any more: %v", err)
	}
	if pauses, err := s.Pauses(t.Context()); err != nil || len(pauses) != 0 {
		t.Errorf("what was begun is there: %+v, %v", pauses, err)
	}
}
