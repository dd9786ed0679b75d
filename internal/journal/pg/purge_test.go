package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// everything is the first step of a sweep over all that there is.
func everything(kind journal.Kind) journal.Purge {
	return journal.Purge{Kind: kind, Before: time.Now().Add(time.Hour), Others: true, Limit: 10}
}

// While one process purges, another one's purge does nothing, does not wait, and says so. The lock is the schema's
// own, and ends with the transaction.
func TestPurgesTakeTurns(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, other := open(t, dsn, ""), open(t, dsn, "other")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, schema := range []string{"hookonce", "other"} {
		if _, err := conn.Exec(t.Context(), `INSERT INTO `+schema+`.events (id, source, received_at) VALUES (1, 'billing', now())`); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('"hookonce".bodies', 0))`); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Purge(t.Context(), everything(journal.KindIDs)); err != nil || got != (journal.Purged{Busy: true}) {
		t.Errorf("beside another purge: deleted %+v, %v", got, err)
	}
	if busy, err := s.ForgetTallies(t.Context(), time.Now()); err != nil || !busy {
		t.Errorf("beside another purge: forgot what was counted: busy %t, %v", busy, err)
	}
	if got, err := other.Purge(t.Context(), everything(journal.KindIDs)); err != nil || got.Deleted != 1 {
		t.Errorf("of another schema: deleted %+v, %v", got, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Purge(t.Context(), everything(journal.KindIDs)); err != nil || got.Deleted != 1 || got.Busy {
		t.Errorf("after it: deleted %+v, %v", got, err)
	}
	if busy, err := s.ForgetTallies(t.Context(), time.Now()); err != nil || busy {
		t.Errorf("after it: forgot what was counted: busy %t, %v", busy, err)
	}
}
