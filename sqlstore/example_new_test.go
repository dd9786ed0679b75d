package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// A store in a SQLite file, next to the tables of the application.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	store := sqlstore.New(db, sqlstore.SQLite)
	_, err = schema.Migrate(context.Background(), db, schema.SQLite, schema.DefaultName)
	fmt.Println(err, store.Check(context.Background()))
	// Output: <nil> <nil>
}
