package pg

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// TestOrderingGroupsSeeWhatWasCommitted: an ordering group's turn is decided by what is there after it was locked, although the
// server or the role may be set to one snapshot for the whole transaction.
func TestOrderingGroupsSeeWhatWasCommitted(t *testing.T) {
	dsn := pgtest.DSN(t) + "&default_transaction_isolation=repeatable%20read"
	s, err := Open(t.Context(), dsn, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	count := func(tx pgx.Tx) (n int) {
		if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM hookonce.lanes`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	err = s.inGroups(t.Context(), func(tx pgx.Tx) error {
		before := count(tx)
		_, err := s.pool.Exec(t.Context(), `INSERT INTO hookonce.lanes VALUES ('app', 'a', now())`)
		if after := count(tx); err != nil || before != 0 || after != 1 {
			t.Errorf("%d ordering groups, then %d, error %v; want 0, then 1", before, after, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
