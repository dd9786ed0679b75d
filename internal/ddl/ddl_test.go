package ddl_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/ddl"
)

// A file that is missing means that a version changes nothing in a dialect; it does in one of them.
func TestVersionsHaveFiles(t *testing.T) {
	for v := range ddl.Version() {
		files, err := filepath.Glob(fmt.Sprintf("*_%d.sql", v+1))
		if err != nil || len(files) == 0 {
			t.Errorf("version %d has no file (%v)", v+1, err)
		}
	}
}

var update = flag.Bool("update", false, "write the golden file")

// The SQL functions that decide about claims are in a file as they are installed, so that a change of what decides is
// seen here as well.
func TestDecidingFunctions(t *testing.T) {
	tables, err := ddl.Named(ddl.Postgres, "")
	if err != nil {
		t.Fatal(err)
	}
	var all, b strings.Builder
	for v := range ddl.Version() {
		all.WriteString(tables.Text(v + 1))
	}
	for _, name := range []string{"decide", "failed", "change", "newer"} {
		_, text, found := strings.Cut(all.String(), `CREATE FUNCTION "hookonce".`+name+"(")
		text, _, ended := strings.Cut(text, "\nEND $$;\n")
		if !found || !ended {
			t.Fatalf("there is no function %s", name)
		}
		fmt.Fprintf(&b, "-- %s(%s\n\n", name, text)
	}
	const golden = "testdata/functions.golden.sql"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || b.String() != string(want) {
		t.Errorf("the functions are not those of %s (%v); if the change is meant, run go test -update ./internal/ddl", golden, err)
	}
}
