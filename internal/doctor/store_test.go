package doctor

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/schema"
)

// Tables that are newer than the program are well where a gateway would start on them, and a fault where it would not.
func TestTablesOfANewerProgram(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, ""); err != nil {
		t.Fatal(err)
	}
	s := &store{db: db, dialect: ddl.SQLite}
	for i, tt := range []struct {
		oldest int64
		level  Level
		text   string
	}{
		{ddl.Version(), OK, "beside which this program"},
		{ddl.Version() + 2, Fault, "use a newer hookonce"},
	} {
		record := fmt.Sprintf("INSERT INTO hookonce_goose_db_version (version_id, is_applied, oldest) VALUES (%d, true, %d)", ddl.Version()+1+int64(i), tt.oldest)
		if _, err := db.ExecContext(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		found := check[*store]{"schema", version}.run(t.Context(), s)
		expect(t, found, map[string]Level{"schema": tt.level})
		if text := texts(found, "schema"); !strings.Contains(text, tt.text) {
			t.Errorf("oldest %d: %s", tt.oldest, text)
		}
	}
}
