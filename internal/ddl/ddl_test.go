package ddl_test

import (
	"crypto/sha256"
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

// What decides is made anew by the newest version that there is, whenever its text changes: a database at an older one would
// keep the old text for ever.
func TestFunctionsBelongToAVersion(t *testing.T) {
	text, err := os.ReadFile("postgres_functions.sql")
	if err != nil {
		t.Fatal(err)
	}
	made := int64(0) // by this version
	for v := range ddl.Version() + 1 {
		file, _ := os.ReadFile(fmt.Sprintf("postgres_%d.sql", v))
		if strings.Contains(string(file), `{{template "postgres_functions.sql" .}}`) {
			made = v
		}
	}
	tables, err := ddl.Named(ddl.Postgres, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		rest, found := strings.CutPrefix(line, "CREATE FUNCTION {{.}}")
		if name, _, _ := strings.Cut(rest, "("); found && !strings.Contains(tables.Text(made), "'"+name+"'") {
			t.Errorf("version %d does not drop an older %s", made, name)
		}
	}
	_, installed, _ := strings.Cut(tables.Text(made), "-- The functions of older versions go")
	sum := fmt.Sprintf("version %d: %x\n", made, sha256.Sum256([]byte(installed)))
	const golden = "testdata/functions.sum"
	if *update {
		if err := os.WriteFile(golden, []byte(sum), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || sum != string(want) {
		t.Errorf("the SQL functions are not those of %s (%v): unless version %d was never released, have a new version make them, "+
			"with the block at the end of postgres_%d.sql, and run go test -update ./internal/ddl", golden, err, made, made)
	}
}

// Versions before 12 have no place for the oldest program that may run beside them, and a later one never asks for a newer
// program than itself: nobody could start.
func TestVersionsRecordWhoMayRunBesideThem(t *testing.T) {
	tables, err := ddl.Named(ddl.SQLite, "")
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(1); v <= ddl.Version(); v++ {
		_, values, _ := strings.Cut(tables.Record(v), "VALUES ")
		var version, oldest int64
		n, _ := fmt.Sscanf(values, "(%d, true, %d)", &version, &oldest)
		if version != v || (n == 2) != (v >= 12) || oldest > v {
			t.Errorf("version %d is recorded by %s", v, tables.Record(v))
		}
	}
}

// The page on upgrades says of each version what the database is told: gateways of which versions may go on beside it.
func TestUpgradesPageSaysWhoMayRunBeside(t *testing.T) {
	page, err := os.ReadFile("../../docs/upgrades.md")
	if err != nil {
		t.Fatal(err)
	}
	for v := first + 1; v <= ddl.Version(); v++ {
		_, text, found := strings.Cut(string(page), fmt.Sprintf("\n**Version %d** ", v))
		text, _, _ = strings.Cut(text, "\n**")
		beside := fmt.Sprintf("versions %d to %d", oldest(t, v), v-1)
		switch v - oldest(t, v) {
		case 1:
			beside = fmt.Sprintf("version %d", v-1)
		case 2:
			beside = fmt.Sprintf("versions %d and %d", v-2, v-1)
		}
		if want := "Gateways of " + beside + " may go on beside it"; !found || !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("docs/upgrades.md does not say %q of version %d: %s", want, v, text)
		}
	}
}

// first is the version that is recorded first with the oldest that may run beside it.
const first int64 = 12

// oldest returns which version the database is told that a program must know to run beside version v.
func oldest(t *testing.T, v int64) (n int64) {
	t.Helper()
	tables, err := ddl.Named(ddl.Postgres, "")
	if err != nil {
		t.Fatal(err)
	}
	_, end, _ := strings.Cut(tables.Record(v), "true, ")
	if _, err := fmt.Sscanf(end, "%d)", &n); err != nil {
		t.Fatalf("%s: %v", tables.Record(v), err)
	}
	return n
}
