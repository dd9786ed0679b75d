package pg_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// grant is a right on a table, or on a "SEQUENCE " and its name.
type grant struct{ verb, of, on string }

// in is the statement that gives the right on what is in the schema.
func (g grant) in(schema, role string) string {
	return "GRANT " + g.verb + " ON " + g.of + schema + "." + g.on + " TO " + role
}

// gatewayRights are the rights of a gateway that does not migrate, as docs/operating.md lists them.
func gatewayRights(t testing.TB) []grant { return listedRights(t, "| `hookonce serve` ") }

// listedRights are those in the rows of the page that begin so.
func listedRights(t testing.TB, row string) (all []grant) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, row) {
			continue
		}
		for _, found := range regexp.MustCompile("`([A-Z, ]+) ON (SEQUENCE |)([a-z_, ]+)`").FindAllStringSubmatch(line, -1) {
			for on := range strings.SplitSeq(found[3], ", ") {
				for verb := range strings.SplitSeq(found[1], ", ") {
					all = append(all, grant{verb, found[2], on})
				}
			}
		}
	}
	return all
}

// TestRights: what the page lists is enough for all that a gateway asks of its journal, and each right to write is
// made use of. Nobody here puts anything aside by dropping a partition, for the purge to delete; and an answer is
// stored by a statement that would replace one, which is never there.
func TestRights(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "CREATE ROLE gateway_app LOGIN"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "DROP OWNED BY gateway_app; DROP ROLE gateway_app"); err != nil {
			t.Error(err)
		}
	})
	d := &database{direct: dsn, dsn: queryMode(strings.Replace(dsn, "postgres@", "gateway_app@", 1), "describe_exec"), role: "gateway_app"}
	journaltest.Run(t, d.fixture)
	journaltest.RunRecords(t, d.fixture)
	awaitAlone(t, conn) // sessions report when they end
	listed, written := map[string]string{}, map[string]string{}
	for _, g := range gatewayRights(t) {
		if g.verb != "SELECT" && g.of == "" && !strings.HasPrefix(g.on, "kept_") && g != (grant{"UPDATE", "", "answers"}) {
			listed[g.on] += " " + g.verb
		}
	}
	rows, err := conn.Query(t.Context(), `SELECT coalesce(parent.relname, s.relname), CASE WHEN sum(n_tup_ins) > 0 THEN ' INSERT' ELSE '' END ||
		CASE WHEN sum(n_tup_upd) > 0 THEN ' UPDATE' ELSE '' END || CASE WHEN sum(n_tup_del) > 0 THEN ' DELETE' ELSE '' END
		FROM pg_stat_user_tables s LEFT JOIN pg_inherits i ON i.inhrelid = s.relid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
		WHERE s.schemaname LIKE 'case%' AND s.relname <> 'goose_db_version' GROUP BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	var table, verbs string
	_, err = pgx.ForEachRow(rows, []any{&table, &verbs}, func() error {
		if verbs != "" {
			written[table] = verbs
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(listed, written); diff != "" {
		t.Errorf("-listed +made use of\n%s", diff)
	}
}
