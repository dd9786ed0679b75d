package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/schema"
)

// TestOpenUpgradesWithOpenWork: what an older program left to be done is done by this one.
func TestOpenUpgradesWithOpenWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	text, err := schema.Print(schema.SQLite, "")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(text, "\n-- Version 2.\n")
	db := beside(t, path)
	for _, sql := range []string{first,
		`INSERT INTO hookonce_events (id, source, key, received_at) VALUES (7, 'billing', 'evt_1', 0)`,
		`INSERT INTO hookonce_bodies (event_id, header, body) VALUES (7, x'', x'31')`,
		`INSERT INTO hookonce_deliveries (event_id, destination, state, token, tries, due_at) VALUES (7, 'app', 'failed', 3, 2, 0)`,
	} {
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if from, to := s.Migrated(); from != 1 || to != ddl.Version() {
		t.Errorf("migrated from %d to %d", from, to)
	}
	now := time.Now()
	work, err := s.Take(t.Context(), now, now.Add(time.Minute), journal.Wanted{Deliveries: 10})
	if err != nil || len(work) != 1 || work[0].Key != "evt_1" || work[0].Token != 4 || string(work[0].Body) != "1" {
		t.Fatalf("took %+v, %v", work, err)
	}
}
