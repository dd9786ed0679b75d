package endtoend

import (
	"database/sql"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the scripts look into files
)

// sqliteInScript runs a file of statements on a SQLite file: sqlite app.db statements.sql
func sqliteInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sqlite file statements")
	}
	statementsInScript(ts, "sqlite", ts.MkAbs(args[0]), args[1])
}

// postgresInScript runs a file of statements on the database at $DSN: postgres statements.sql
func postgresInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: postgres statements")
	}
	statementsInScript(ts, "pgx", ts.Getenv("DSN"), args[0])
}

func statementsInScript(ts *testscript.TestScript, driver, dsn, file string) {
	db, err := sql.Open(driver, dsn)
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(ts.ReadFile(file))
	ts.Check(err)
}
