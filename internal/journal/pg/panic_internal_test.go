package pg

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// TestStoreSurvivesPanics: net/http survives a handler that panics, so what one did inside a transaction
// must be taken back, its locks released, and its connection, here the only one, given back.
func TestStoreSurvivesPanics(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := journal.Pause{Destination: "app", At: time.Now(), By: "ada"}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = s.change(t.Context(), "panicking", func(tx pgx.Tx) error {
			if _, err := s.setPaused(t.Context(), tx, p, true); err != nil {
				t.Error(err)
			}
			panic("inside a transaction")
		})
	}()
	if pauses, err := s.Pauses(t.Context()); err != nil || len(pauses) != 0 {
		t.Errorf("what was begun is there: %+v, %v", pauses, err)
	}
	if changed, err := s.SetPaused(t.Context(), p, true); err != nil || !changed {
		t.Errorf("pausing: %v, %v", changed, err)
	}
}
