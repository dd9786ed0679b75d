package pg_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// TestBesideVersion12: a gateway that knows version 12 of the tables stores events beside this one, which takes their copies for
// what they are. It finds no digest with an event from a list, takes the first webhook for a conflict, and changes nothing: the
// next copy that comes here supplies it.
func TestBesideVersion12(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `WITH won AS (
			INSERT INTO hookonce.events (id, source, key, event_type, digest, received_at, resource, rank, vouched, unrouted)
			VALUES (7, 'billing', 'older', '', 'd', now(), NULL, NULL, 0, NULL) ON CONFLICT (source, key) DO NOTHING RETURNING id
		), stored AS (
			INSERT INTO hookonce.bodies (event_id, header, body) SELECT id, '', '' FROM won
		)
		INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries, due_at) SELECT id, 'app', 'pending', 0, 0, now() FROM won`); err != nil {
		t.Fatal(err)
	}
	copied, listed := entry("older"), entry("listed")
	copied.Digest = []byte("d")
	listed.Listed, listed.Digest, listed.Hold = true, nil, nil
	results, err := accept(t.Context(), s, copied, listed)
	if err != nil || results[0] != (journal.Result{Status: journal.Duplicate, ID: 7}) || results[1].Status != journal.Accepted {
		t.Fatalf("results %+v, %v", results, err)
	}
	known, err := s.Known(t.Context(), copied.Source, []string{"older"})
	if err != nil || !known["older"].Verified || known["older"].Listed {
		t.Errorf("known: %+v, %v", known, err)
	}
	var digest []byte
	if err := conn.QueryRow(t.Context(), `SELECT digest FROM hookonce.events WHERE key = 'listed'`).Scan(&digest); err != nil || digest != nil {
		t.Errorf("of a listed event it reads the digest %q, %v", digest, err)
	}
	if work, err := s.Take(t.Context(), time.Now(), time.Now().Add(time.Hour), journal.Wanted{Deliveries: 10}); err != nil || len(work) != 2 {
		t.Errorf("took %v, %v", work, err)
	}
	for _, want := range []journal.Status{journal.Duplicate, journal.Conflict} {
		webhook := entry("listed")
		webhook.Digest = []byte(want)
		if results, err := accept(t.Context(), s, webhook); err != nil || results[0].Status != want {
			t.Errorf("results %+v, %v, want %s", results, err, want)
		}
	}
}
