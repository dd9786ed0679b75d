package doctor

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/tally"
)

// store is an open database with what differs between kinds of them.
type store struct {
	db      *sql.DB
	dialect ddl.Dialect
	schema  string
	prefix  string            // of the tables
	serves  bool              // a gateway uses it, not only programs with the library
	creates bool              // a gateway that uses it makes the tables at its start
	sources map[string]string // the modes of its sources, by their names
	names   map[string]bool   // of its destinations
	now     func() time.Time
	// cell is the cell that the gateway belongs to, and cellsMap the number of its map in the file; empty: there are none.
	cell     string
	cellsMap int64
	// at is a time as the tables have it; placeholder stands for the first argument.
	at          func(time.Time) any
	placeholder string
}

// runs reports whether a source of the gateway is in the mode.
func (s *store) runs(mode string) bool {
	return slices.Contains(slices.Collect(maps.Values(s.sources)), mode)
}

// examineStore opens the store and asks it. A store that cannot be reached is one finding.
func examineStore(ctx context.Context, p Patient) []Finding {
	if p.Config.Store.Driver == config.Postgres {
		return examinePostgres(ctx, p)
	}
	return examineSQLite(ctx, p)
}

// tableChecks ask any database about hookonce's own tables.
func tableChecks() []check[*store] {
	return []check[*store]{
		{"schema", version},
		{"claims", claims},
		{"deliveries", deliveries},
		{"sources", sources},
		{"destinations", destinations},
		{"effects", effects},
		{"ages", ages},
		{"numbers", numbers},
	}
}

func version(ctx context.Context, s *store) ([]Finding, error) {
	have, err := ddl.Recorded(ctx, s.db, s.dialect, s.schema)
	if err != nil {
		return nil, err
	}
	err = ddl.Check(ctx, s.db, s.dialect, s.schema)
	switch {
	case have == 0 && (s.creates || !s.serves):
		return one(doubt("nothing, if this is the first start; else correct --store", "%s", notStarted(s.creates)))
	case errors.Is(err, hookonce.ErrSchemaMissing) && s.serves && s.creates:
		return one(doubt("nothing: the next start brings them up to date, and `hookonce migrate` does so before it", "the tables have version %d, and this program knows %d", have, ddl.Version()))
	case errors.Is(err, hookonce.ErrSchemaMissing):
		return one(bad("run `hookonce migrate`", "%s", oneLine(err)))
	case errors.Is(err, hookonce.ErrSchemaNewer):
		return one(bad("use the version of hookonce that migrated it, or a newer one", "%s", oneLine(err)))
	case err != nil:
		return nil, err
	}
	if have > ddl.Version() {
		return one(good("version %d, beside which this program, that knows %d, may run", have, ddl.Version()))
	}
	return one(good("version %d", have))
}

// notStarted says that nothing is there yet, and what makes it.
func notStarted(creates bool) string {
	if creates {
		return "not started yet: `hookonce serve` or `hookonce migrate` will create the tables"
	}
	return "not started yet: `hookonce migrate` will create the tables"
}

// migrated reports whether the tables are there.
func (s *store) migrated(ctx context.Context) bool {
	return ddl.Check(ctx, s.db, s.dialect, s.schema) == nil
}

// fill puts the tables and the placeholder into a query.
func (s *store) fill(query string) string {
	return strings.NewReplacer("{tables}", s.prefix, "{time}", s.placeholder).Replace(query)
}

// stale is how long open work may be left alone before somebody should look.
const stale = time.Hour

// counted is a question about open work: how many rows, and what that means.
type counted struct {
	query  string // with {tables} for the prefix and {time} for an hour ago
	noun   string // of what was counted
	text   string // about it
	advice string
}

// count asks all questions and returns what is not zero, or that all is well.
func (s *store) count(ctx context.Context, fine string, questions []counted) (found []Finding, err error) {
	if !s.migrated(ctx) {
		return nil, nil // which is a finding of its own
	}
	for _, q := range questions {
		var n int64
		if err := s.db.QueryRowContext(ctx, s.fill(q.query), s.at(s.now().Add(-stale))).Scan(&n); err != nil {
			return found, err
		}
		if n > 0 {
			found = append(found, doubt(q.advice, "%s: %s", plural(n, q.noun), q.text))
		}
	}
	if len(found) == 0 {
		found = append(found, good("%s", fine))
	}
	return found, nil
}

func claims(ctx context.Context, s *store) ([]Finding, error) {
	return s.count(ctx, "none was left open for an hour, and none is dead", []counted{
		{`SELECT count(*) FROM {tables}claims WHERE state = 'processing' AND lease_until IS NULL AND updated_at < {time}`, "claim",
			"held without a deadline, and not touched for an hour",
			"find out whether its owner lives; if not, fail the claim by hand, because nobody else ever takes it over"},
		{`SELECT count(*) FROM {tables}claims WHERE state = 'processing' AND lease_until < {time} AND updated_at < {time}`, "claim",
			"lease ran out more than an hour ago",
			"the owner died, and no copy came since: have the sender send the event again"},
		{`SELECT count(*) FROM {tables}claims WHERE state = 'failed' AND updated_at < {time}`, "claim",
			"failed more than an hour ago, and not tried again",
			"have the sender send the event again; last_error says why it failed"},
		{`SELECT count(*) FROM {tables}claims WHERE state = 'dead' AND {time} IS NOT NULL`, "claim",
			"given up",
			"look at last_error; a redelivery by the sender tries again"},
	})
}

func deliveries(ctx context.Context, s *store) ([]Finding, error) {
	return s.count(ctx, "none is overdue, and none is dead", []counted{
		{`SELECT count(*) FROM {tables}deliveries WHERE due_at < {time}`, "delivery",
			"due for more than an hour",
			"is a gateway running that knows its destination, and is that one up? See `hookonce destinations list`"},
		{`SELECT count(*) FROM {tables}deliveries WHERE state = 'dead' AND {time} IS NOT NULL`, "delivery",
			"given up",
			"see `hookonce events list --state dead`; `hookonce events replay` delivers them again"},
	})
}

// lately is for how long a copy of what came under an old name may still come.
const lately = 30 * day

const day = 24 * time.Hour

// cameSQL asks of each source whether events came under keys of it lately: what it had before it could be renamed.
const cameSQL = `SELECT source, max(CASE WHEN what = 'accepted' AND hour >= {time} THEN 1 ELSE 0 END) FROM {tables}tally_hours
	WHERE what IN ('received', 'accepted', 'unkeyed', 'unprotected', 'copies', 'conflicts') GROUP BY source ORDER BY source`

// sources finds a source that may have been given another name, under which no copy would be recognised: one that had events
// with keys lately is not configured, and one that is, and keeps keys, had nothing as long as counts are kept.
func sources(ctx context.Context, s *store) ([]Finding, error) {
	if !s.serves || !s.migrated(ctx) {
		return nil, nil
	}
	rows, err := s.db.QueryContext(ctx, s.fill(cameSQL), s.at(s.now().Add(-lately)))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var gone []string
	fresh := maps.Clone(s.sources)
	maps.DeleteFunc(fresh, func(_, mode string) bool { return mode != config.Async && mode != config.Sync })
	for rows.Next() {
		var name string
		var recent bool
		if err := rows.Scan(&name, &recent); err != nil {
			return nil, err
		}
		delete(fresh, name)
		if _, is := s.sources[name]; recent && !is {
			gone = append(gone, name)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(gone) == 0 || len(fresh) == 0 {
		return one(good("none looks as if it had been renamed"))
	}
	return one(doubt("if it is the same source, give it its old name back: under another one copies of what it had count as new, and their work is done again; if not, nothing",
		"%s had events in the last %d days, and no source has this name; %s had none in the last %d days",
		strings.Join(gone, ", "), lately/day, strings.Join(slices.Sorted(maps.Keys(fresh)), ", "), tally.KeepHours/day))
}

// destinations finds work that no gateway with this configuration would do, as after a name was changed.
func destinations(ctx context.Context, s *store) (found []Finding, err error) {
	if !s.serves || !s.migrated(ctx) {
		return nil, nil
	}
	rows, err := s.db.QueryContext(ctx, s.fill(`SELECT destination, count(*) FROM {tables}deliveries WHERE state <> 'dead' GROUP BY destination ORDER BY destination`))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		if !s.names[name] {
			found = append(found, doubt("give it this name back: what is open goes on then; nothing else delivers it", "%s: open for %s, which is no destination of this configuration", plural(n, "delivery"), name))
		}
	}
	if len(found) == 0 {
		found = append(found, good("all that is open has a destination here"))
	}
	return found, rows.Err()
}

func effects(ctx context.Context, s *store) ([]Finding, error) {
	return s.count(ctx, "none is overdue, and none is dead", []counted{
		{`SELECT count(*) FROM {tables}effects WHERE due_at < {time}`, "effect",
			"due for more than an hour",
			"is a relay running that knows its name?"},
		{`SELECT count(*) FROM {tables}effects WHERE state = 'dead' AND {time} IS NOT NULL`, "effect",
			"given up",
			"look at last_error, mend the cause, and redrive it"},
	})
}
