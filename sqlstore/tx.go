package sqlstore

import (
	"context"
	"database/sql"
)

// inTx runs fn in a transaction of the store's own. An error of the commit says nothing about whether it
// took effect.
func inTx(ctx context.Context, db *sql.DB, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // database/sql drops a connection whose rollback failed
		return err
	}
	return tx.Commit()
}
