package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// A schema is the place's only if it bears the place's mark: two that come upon the same name do not share it, and what took
// its place meanwhile is not dropped.
func TestOnlyAMarkedSchemaIsDropped(t *testing.T) {
	t.Parallel()
	target := Target{Kind: Postgres, URL: pgtest.DSN(t), Name: Prefix + "_x_aaaaaa"}
	first, second := newPostgresPlace(target), newPostgresPlace(target)
	if err := first.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "already, and nothing that is there is touched") {
		t.Errorf("the same name is taken twice: %v", err)
	}
	conn, err := first.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `CREATE SCHEMA `+target.Name+`_library_1`); err != nil {
		t.Fatal(err)
	}
	left := func(want int) {
		t.Helper()
		var n int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'hookonce_conf%'`).Scan(&n); err != nil || n != want {
			t.Errorf("%d schemas are left, want %d (%v)", n, want, err)
		}
	}
	if err := second.remove(t.Context()); err == nil {
		t.Error("a schema without the mark is removed")
	}
	left(2)
	if err := first.remove(t.Context()); err != nil {
		t.Error(err)
	}
	left(0)
}

// The other places are taken by making them, too.
func TestAFolderThatIsThereIsRefused(t *testing.T) {
	dir := t.TempDir()
	p := sqlitePlace{Target{Kind: SQLite, URL: filepath.Join(dir, "app.db"), Name: Prefix + "_x_aaaaaa"}}
	if err := os.Mkdir(p.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.prepare(t.Context()); err == nil {
		t.Error("it is taken")
	}
}

// The URL of a server is read as it is written for all others: an address of IPv6 stands in brackets.
func TestAddressesOfMySQL(t *testing.T) {
	for url, want := range map[string]string{
		"mysql://root@db.example/":           "db.example:3306",
		"mysql://root:x@192.0.2.7:3307/":     "192.0.2.7:3307",
		"mariadb://root@[2001:db8::7]:3307/": "[2001:db8::7]:3307",
		"mysql://[::1]/":                     "[::1]:3306",
	} {
		cfg, err := mysqlPlace{Target{Kind: MySQL, URL: url}}.config("x")
		if err != nil || cfg.Addr != want || cfg.DBName != "x" {
			t.Errorf("%s is read as %+v (%v), want %s", url, cfg, err, want)
		}
	}
}

// Every address of IP is masked, and nothing that only looks like one.
func TestAddressesAreMasked(t *testing.T) {
	var target Target
	target.URL = "postgres://db.example:5432/x?hostaddr=other.example&user=somebody"
	for text, want := range map[string]string{
		"dial tcp 192.0.2.7:5432: refused":          "dial tcp (the server):5432: refused",
		"dial tcp [2001:db8::7]:5432: refused":      "dial tcp [(the server)]:5432: refused",
		"at fe80::1%eth0, ::1.":                     "at (the server), (the server).",
		"at 2001:db8::7: no":                        "at (the server): no",
		"db.example:5432 db.example other.example":  "(the server) (the server) (the server)",
		"user somebody":                             "user (the user)",
		"x.go:12: 10:20:30 n::text PostgreSQL 15.4": "x.go:12: 10:20:30 n::text PostgreSQL 15.4",
	} {
		if got := target.masked(text); got != want {
			t.Errorf("%q is masked as %q, want %q", text, got, want)
		}
	}
}
