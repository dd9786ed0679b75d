package ddl

import (
	"context"
	"database/sql"
	"fmt"
)

// Transactional returns an error that says what to do if there are no transactions on the connections of a
// Postgres database: PgBouncer in statement mode refuses BEGIN, and carries out everything else
// (https://www.pgbouncer.org/features.html). Not every driver passes its reason on.
func Transactional(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		return tx.Rollback()
	}
	if _, alone := db.ExecContext(ctx, "SELECT 1"); alone != nil {
		return err
	}
	return fmt.Errorf("hookonce: transactions are refused, which claim and effect need, and single statements are not: is there a pooler in "+
		"statement mode? set its pool_mode to transaction or session: %w", err)
}
