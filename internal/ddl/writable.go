package ddl

import (
	"context"
	"errors"
	"fmt"
)

// writable returns an error that says what to do if nothing can be written on connections like those of db: they are read-only,
// or the role may read claims, and write to none of the library's tables. What a role needs goes by what it does, so one that may
// write to some table has what it needs as far as can be told, and so has one that has nothing to do with claims. It writes nothing.
func (t Tables) writable(ctx context.Context, db Querier) error {
	if t.Dialect != Postgres {
		return nil
	}
	var standby, readOnly, reader bool
	err := db.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
		has_table_privilege('`+t.prefix+`claims', 'SELECT') AND NOT EXISTS (
			SELECT FROM unnest(ARRAY['claims', 'responses', 'effects', 'versions', 'states']) AS name
			WHERE has_table_privilege('`+t.prefix+`' || name, 'INSERT, UPDATE, DELETE')
				OR has_any_column_privilege('`+t.prefix+`' || name, 'INSERT, UPDATE'))`).Scan(&standby, &readOnly, &reader)
	switch {
	case err != nil:
		return fmt.Errorf("hookonce: asking what may be written in the schema %s: %w", t.Name, err)
	case standby:
		return errors.New("hookonce: the server is a standby, on which nothing can be claimed: connect to the primary (target_session_attrs=read-write)")
	case readOnly:
		return errors.New("hookonce: transactions are read-only, so that nothing can be claimed: set default_transaction_read_only to off " +
			"for this role, this database or these connections, wherever it is on")
	case reader:
		return fmt.Errorf("hookonce: this role may read the tables in the schema %s and write to none, so that nothing can be claimed: "+
			`GRANT what the program needs; docs/operating.md lists it under "Rights in the database"`, t.Name)
	}
	return nil
}
