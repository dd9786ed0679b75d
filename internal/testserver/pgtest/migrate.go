package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce/schema"
)

// Migrate makes hookonce's tables in the pool's database, in the schema called name; empty: the default.
func Migrate(t testing.TB, pool *pgxpool.Pool, name string) {
	t.Helper()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	if _, err := schema.Migrate(t.Context(), db, schema.Postgres, name); err != nil {
		t.Fatal(err)
	}
}
