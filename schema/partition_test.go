package schema_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/schema"
)

// identifiers of events: of 14 March 2026, and of a clock that was ten years ahead.
const (
	idOfMarch = 195_000_000_000 << 22
	idAhead   = (195_000_000_000 + 10*365*86_400_000) << 22
)

// fill stores an event with a body and an attempt, as versions before the seventh have them.
func fill(t *testing.T, db *sql.DB, id int64) {
	t.Helper()
	exec(t, db, fmt.Sprintf(`INSERT INTO hookonce.bodies (event_id, header, body) VALUES (%d, 'h', 'body')`, id))
	exec(t, db, fmt.Sprintf(`INSERT INTO hookonce.attempts (event_id, destination, token, outcome, status, error, started_at, duration_us, answer)
		VALUES (%d, 'app', 3, 'failed', 500, 'why', '2026-03-14', 9, 'answer')`, id))
}

// What there is becomes the first partition, and what does not fit is put aside. From version 4, which had the
// same tables, and from the one before.
func TestUpgradeDividesTables(t *testing.T) {
	for _, version := range []int64{5, 7} {
		d := driver{name: "pgx", dialect: schema.Postgres}
		db := d.open(t, pgtest.DSN(t))
		exec(t, db, before(t, d, version))
		fill(t, db, idOfMarch)
		fill(t, db, idAhead)
		if from, to := migrate(t, db, schema.Postgres, ""); from != version-1 || to != ddl.Version() {
			t.Errorf("migrated from %d to %d", from, to)
		}
		for where, id := range map[string]int64{"%s_before": idOfMarch, "kept_%s": idAhead} {
			for table, row := range map[string]string{
				"bodies":   `header = 'h' AND body = 'body'`,
				"attempts": `destination = 'app' AND token = 3 AND outcome = 'failed' AND status = 500 AND error = 'why' AND duration_us = 9 AND answer = 'answer'`,
			} {
				var n int
				name := fmt.Sprintf(where, table)
				if err := db.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT count(*) FROM hookonce.%s WHERE event_id = %d AND %s`, name, id, row)).Scan(&n); err != nil || n != 1 {
					t.Errorf("from version %d: %d rows in %s, %v", version-1, n, name, err)
				}
			}
		}
		var rows int
		if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM hookonce.bodies) + (SELECT count(*) FROM hookonce.attempts)`).Scan(&rows); err != nil || rows != 2 {
			t.Errorf("%d rows in the divided tables, %v", rows, err)
		}
		fill(t, db, idOfMarch+1)
		fill(t, db, idAhead+1)
	}
}

// Empty tables leave nothing behind.
func TestNewTablesHaveNoPartitions(t *testing.T) {
	d := driver{name: "pgx", dialect: schema.Postgres}
	db := d.open(t, pgtest.DSN(t))
	migrate(t, db, schema.Postgres, "")
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_class WHERE relname LIKE '%_before%'`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d relations are left, %v", n, err)
	}
}
