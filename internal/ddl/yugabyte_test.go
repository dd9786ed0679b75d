package ddl_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// No text has what YugabyteDB has not, and each asks for keys in order.
func TestYugabyteTexts(t *testing.T) {
	for _, d := range []ddl.Dialect{ddl.Yugabyte, ddl.Postgres} {
		tables, err := ddl.Named(d, "")
		if err != nil {
			t.Fatal(err)
		}
		lacks := 0
		for v := range ddl.Version() + 1 {
			text := tables.Text(v)
			if found := pgproxy.YugabyteLacks(text); found != "" {
				lacks++
				if d == ddl.Yugabyte {
					t.Errorf("version %d has %q", v, found)
				}
			}
			ordered := strings.Contains(text, "'off', true) FROM pg_settings WHERE name = 'yb_use_hash_splitting_by_default'")
			if keys := strings.Contains(text, "PRIMARY KEY") || strings.Contains(text, "INDEX"); keys && ordered != (d == ddl.Yugabyte) {
				t.Errorf("version %d of %s asks for keys in order: %v", v, d, ordered)
			}
		}
		if d == ddl.Postgres && lacks < 8 {
			t.Errorf("PostgreSQL's texts have what YugabyteDB has not in %d versions only: is it looked for?", lacks)
		}
	}
}

// The tables are PostgreSQL's, column by column and index by index, but for partitions.
func TestYugabyteHasTheSameTables(t *testing.T) {
	dsn := pgtest.DSN(t)
	plain := layout(t, dsn, ddl.Postgres, "plain")
	if variant := layout(t, dsn, ddl.Yugabyte, "variant"); !slices.Equal(plain, variant) {
		for _, l := range plain {
			if !slices.Contains(variant, l) {
				t.Error("the variant lacks: ", l)
			}
		}
		for _, l := range variant {
			if !slices.Contains(plain, l) {
				t.Error("the variant alone has: ", l)
			}
		}
	}
	if len(plain) < 200 {
		t.Errorf("%d columns and indexes were compared", len(plain))
	}
}

// layout makes the tables and describes their columns, keys, indexes and checks.
func layout(t *testing.T, dsn string, d ddl.Dialect, name string) (all []string) {
	t.Helper()
	tables, err := ddl.Named(d, name)
	if err != nil {
		t.Fatal(err)
	}
	db := connect(t, dsn, 1)
	for v := range ddl.Version() + 1 {
		if _, err := db.ExecContext(t.Context(), tables.Text(v)); err != nil {
			t.Fatalf("%s, version %d: %v", d, v, err)
		}
	}
	rows, err := db.QueryContext(t.Context(), `
		SELECT format('%s.%s %s %s %s %s', table_name, column_name, data_type, collation_name, is_nullable, column_default)
			FROM information_schema.columns WHERE table_schema = $1
		UNION ALL SELECT format('%s %s', tablename, indexdef) FROM pg_indexes WHERE schemaname = $1
		UNION ALL SELECT format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = $1::regnamespace AND contype <> 't'
		UNION ALL SELECT format('sequence %s %s %s', sequencename, max_value, cycle) FROM pg_sequences WHERE schemaname = $1`, name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	other := strings.NewReplacer(name+".", "", "ON ONLY ", "ON ")
	for rows.Next() {
		var l string
		if err := rows.Scan(&l); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(l, "_default") { // of a partition
			all = append(all, other.Replace(l))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// The server's word decides, and the library does not keep its claims there.
func TestYugabyteIsKnown(t *testing.T) {
	dsn := pgtest.DSN(t)
	for at, is := range map[string]bool{dsn: false, pgproxy.New(t, dsn, pgproxy.Yugabyte): true} {
		db := connect(t, at, 2)
		tables, err := ddl.Named(ddl.Postgres, "")
		if err != nil {
			t.Fatal(err)
		}
		if tables, err = tables.Variant(t.Context(), db); err != nil || tables.Yugabyte != is || tables.Dialect != ddl.Postgres {
			t.Errorf("%+v, %v", tables, err)
		}
		if err := ddl.Sound(t.Context(), db); err != nil {
			t.Error(err)
		}
		for _, look := range []func(context.Context, *sql.DB) error{ddl.SoundForClaims, ddl.TakesClaims} {
			if err := look(t.Context(), db); (err != nil) != is {
				t.Error(err)
			}
		}
	}
}

// In a database of another encoding an event would be refused for one character of its type, or of the error that its handler
// gave up with.
func TestClaimsAskForUTF8(t *testing.T) {
	dsn := pgtest.DSN(t)
	if _, err := connect(t, dsn, 1).ExecContext(t.Context(), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	at, query := strings.LastIndex(dsn, "/"), dsn[strings.Index(dsn, "?"):]
	db := connect(t, dsn[:at]+"/latin"+query, 1)
	t.Cleanup(func() {
		db.Close()
		if _, err := connect(t, dsn, 1).ExecContext(context.Background(), "DROP DATABASE latin"); err != nil {
			t.Error(err)
		}
	})
	if err := ddl.TakesClaims(t.Context(), db); err == nil || !strings.Contains(err.Error(), "LATIN1") {
		t.Error(err)
	}
	if err := ddl.SoundForClaims(t.Context(), db); err != nil { // for who works off what is there
		t.Error(err)
	}
}
