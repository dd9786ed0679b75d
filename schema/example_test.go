package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce/schema"
	_ "modernc.org/sqlite"
)

// A program that makes its tables when it starts. Where they are there already, nothing is done.
func ExampleMigrate() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	made, err := schema.Migrate(context.Background(), db, schema.SQLite, schema.DefaultName)
	if err != nil {
		panic(err)
	}
	again, err := schema.Migrate(context.Background(), db, schema.SQLite, schema.DefaultName)
	fmt.Println(made.From, again.From == made.To, again.From == again.To, err)
	// Output: 0 true true <nil>
}

// A program with a pool of pgx lends it for that.
func ExampleMigrate_pgx() {
	migrate := func(ctx context.Context, pool *pgxpool.Pool) error {
		db := stdlib.OpenDBFromPool(pool)
		defer db.Close() // the pool stays open
		_, err := schema.Migrate(ctx, db, schema.Postgres, schema.DefaultName)
		return err
	}
	pool, err := pgxpool.New(context.Background(), "postgres:///shop?host=/nowhere") // no server is asked yet
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	fmt.Println(migrate(context.Background(), pool) != nil)
	// Output: true
}

// The same as text, for a migration tool of your own.
func ExamplePrint() {
	text, err := schema.Print(schema.Postgres, schema.DefaultName)
	fmt.Println(strings.Contains(text, "CREATE TABLE"), err)
	// Output: true <nil>
}
