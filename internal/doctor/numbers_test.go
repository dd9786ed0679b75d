package doctor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/schema"
)

// What a clock that was ahead left behind is named, and the statements of the page make due what it put off.
func TestNumbersOfAClockThatWasAhead(t *testing.T) {
	onEach(t, func(t *testing.T, s *store) {
		now, ids := time.Now(), journal.NewIDs(1, 0)
		look := func(level Level, want ...string) {
			t.Helper()
			found := check[*store]{"numbers", numbers}.run(t.Context(), s)
			expect(t, found, map[string]Level{"numbers": level})
			if len(found) != len(want) {
				t.Fatalf("found %+v, want %q", found, want)
			}
			for i := range found {
				if !strings.HasPrefix(found[i].Text, want[i]) {
					t.Errorf("found %+v, want %q", found[i], want[i])
				}
			}
		}
		exec := func(statement string, args ...any) {
			t.Helper()
			if _, err := s.db.ExecContext(t.Context(), s.fill(statement), args...); err != nil {
				t.Fatal(err)
			}
		}
		delivery := func(id int64, due time.Time, state string, origin journal.Origin) {
			t.Helper()
			exec(fmt.Sprintf(`INSERT INTO {tables}events (id, source, received_at) VALUES (%d, 'billing', $1)`, id), s.at(now))
			exec(fmt.Sprintf(`INSERT INTO {tables}deliveries (event_id, destination, state, token, tries, due_at, origin) VALUES (%d, 'app', '%s', 0, 0, $1, %d)`,
				id, state, origin), s.at(due))
		}
		event := func(id int64, due time.Time, state string) {
			t.Helper()
			delivery(id, due, state, journal.OriginFresh)
		}
		event(ids.Next(now), now.Add(farOff-time.Hour), "failed")
		event(ids.Next(now.Add(journal.MuchAhead-time.Minute)), now, "pending")
		week := now.AddDate(0, 0, 7) // by a clock that was less ahead, which does not show
		event(ids.Next(now), week, "pending")
		exec(`INSERT INTO {tables}lanes (destination, resource, due_at) VALUES ('app', 'billing/pi_2', $1)`, s.at(week))
		exec(`INSERT INTO {tables}lanes (destination, resource, due_at, event_id) VALUES ('app', 'billing/pi_3', $1, 1)`, s.at(week))
		delivery(ids.Next(now), week, "pending", journal.OriginReplayed)
		event(ids.Next(now), now.Add(time.Hour), "processing")
		if s.dialect == schema.Postgres { // a file is freed of them when it is opened
			event(ids.Next(now), week, "processing")
		}
		exec(`UPDATE {tables}deliveries SET waits_since = due_at WHERE origin = 2`) // with a rate, which keeps its times
		delivery(ids.Next(now), now, "failed", journal.OriginReplayed)
		exec(`UPDATE {tables}deliveries SET waits_since = $1 WHERE waits_since IS NULL AND origin = 2`, s.at(week)) // by such a clock
		look(OK, "none is of a time to come")
		future := now.AddDate(5, 0, 0)
		event(ids.Next(future), future, "pending")
		event(ids.Next(now), now, "pending")
		exec(`INSERT INTO {tables}lanes (destination, resource, due_at) VALUES ('app', 'billing/pi_1', $1)`, s.at(future))
		look(Warning, "2 events numbered by a clock that was ahead", "1 delivery due only in 30 days or later")
		for _, statement := range overdueStatements(t, s.dialect) {
			exec(statement)
		}
		look(Warning, "2 events numbered by a clock that was ahead")
		var late int64
		if err := s.db.QueryRowContext(t.Context(), s.fill(`SELECT (SELECT count(*) FROM {tables}lanes WHERE due_at > {time}) + (SELECT count(*) FROM {tables}deliveries WHERE due_at > {time})`),
			s.at(now.Add(time.Minute))).Scan(&late); err != nil || late != 3 {
			t.Errorf("%d are due later, %v; want the ones that a schedule and a replay put off, and that somebody holds", late, err)
		}
		var kept int64
		if err := s.db.QueryRowContext(t.Context(), s.fill(`SELECT count(*), count(CASE WHEN waits_since = due_at THEN 1 END) FROM {tables}deliveries
			WHERE waits_since IS NOT NULL`)).Scan(&late, &kept); err != nil || late != 1 || kept != 1 {
			t.Errorf("%d wait since a time to come, %d of them as a replay put them off, %v: what fails of the others would page nobody", late, kept, err)
		}
	})
}

// overdueStatements returns those of the page for a database.
func overdueStatements(t *testing.T, dialect schema.Dialect) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## A clock that is wrong")
	_, block, _ := strings.Cut(section, "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	prefix := map[schema.Dialect]string{schema.SQLite: "UPDATE hookonce_", schema.Postgres: "UPDATE hookonce."}[dialect]
	for statement := range strings.SplitSeq(block, ";\n") {
		if i := strings.Index(statement, prefix); i >= 0 {
			all = append(all, statement[i:])
		}
	}
	if len(all) != 3 {
		t.Fatalf("%q are the statements for %s", all, dialect)
	}
	return all
}
