package outbox

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"
)

// What a relay has done is on the disk before it says so, and it leaves the file as the application has it.
func TestPragmas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	application, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer application.Close()
	if _, err := application.Exec("CREATE TABLE t (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+pragmas)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for pragma, want := range map[string]string{"synchronous": "2", "busy_timeout": "2000", "journal_mode": "delete"} { // 2 is FULL
		var got string
		if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %s", pragma, got, err, want)
		}
	}
}
