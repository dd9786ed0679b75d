package effects

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// place says where a kind of lost effects is looked for, and what keeps records there.
var place = map[string]string{
	Claims: "--lost looks where the library and the SQL functions record what is done: name their database with --store, and their schema with --schema. " +
		"What a gateway delivered is found with --lost=events",
	Events: "--lost=events looks in the journal of a gateway, which must be in the same database as the table: name it with --store, and its schema with --schema. " +
		"What the library and the SQL functions did is found with --lost",
}

// absent says which of the tables are not there that the question needs, if any.
func (s *session) absent(ctx context.Context, q Question) (fault string, err error) {
	var lacking []string
	for _, table := range s.tables[q.Lost] {
		var there bool
		if err := s.row(ctx, s.exists, []any{s.prefix + table}, &there); err != nil {
			return "", err
		}
		if !there {
			lacking = append(lacking, s.prefix+table)
		}
	}
	if len(lacking) == 0 {
		return "", nil
	}
	return fmt.Sprintf("this database has no table %s. %s", strings.Join(lacking, ", "), place[q.Lost]), nil
}

// nothing says why nothing at all is on record as done: with nothing to compare, "none is lost" would be no answer.
func (s *session) nothing(ctx context.Context, q Question) (fault string, err error) {
	table := s.prefix + s.tables[q.Lost][0]
	var all, own int64
	if err := s.row(ctx, "SELECT count(*) FROM "+table, nil, &all); err != nil {
		return "", err
	}
	if all == 0 {
		return fmt.Sprintf("%s is empty. %s", table, place[q.Lost]), nil
	}
	if q.Only == "" {
		return fmt.Sprintf("%s has %d rows, and none of them is on record as done%s", table, all, whyNot[q.Lost]), nil
	}
	if err := s.row(ctx, "SELECT count(*) FROM "+table+" WHERE source = "+s.placeholder, []any{q.Only}, &own); err != nil {
		return "", err
	}
	if own == 0 {
		return fmt.Sprintf("%s has nothing of the source %q: correct --source. %s", table, q.Only, place[q.Lost]), nil
	}
	return fmt.Sprintf("%s has %d rows of the source %q, and none of them is on record as done%s", table, own, q.Only, whyNot[q.Lost]), nil
}

// whyNot says what keeps records of done work from being there, other than that there was none.
var whyNot = map[string]string{
	Claims: "",
	Events: ": what was delivered is known as long as its attempts are kept (retention.attempts)",
}

// advise adds to an error of a question what to do about it, where it is a right that is missing.
func advise(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42501" { // insufficient_privilege
		return fmt.Errorf("%w; grant this role what docs/operating.md lists for 'hookonce reconcile effects' under \"Rights in the database\"", err)
	}
	return err
}
