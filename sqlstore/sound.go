package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// soundSQLite refuses connections that read what others have not committed. That takes the shared cache as well,
// and the pragma has no use without it. https://www.sqlite.org/sharedcache.html#read_uncommitted_isolation_mode
func soundSQLite(ctx context.Context, db *sql.DB) error {
	var dirty bool
	if err := db.QueryRowContext(ctx, `PRAGMA read_uncommitted`).Scan(&dirty); err != nil || !dirty {
		return err
	}
	return errors.New("connections read what others have not committed (PRAGMA read_uncommitted, with cache=shared): a copy would be told " +
		"that work is done which may still be rolled back, and the event be lost; remove the pragma")
}

// soundMySQL refuses settings of the connection under which claims are not what they say.
func soundMySQL(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SHOW SESSION VARIABLES WHERE Variable_name IN ('autocommit', 'tx_isolation', 'transaction_isolation')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		switch {
		case name == "autocommit" && value != "ON":
			return errors.New("connections have autocommit off: claims under a lease, and the traces of failures, would be gone with " +
				"their connection; remove autocommit from the connection string, or init_connect from the server")
		case strings.EqualFold(value, "READ-UNCOMMITTED"):
			return errors.New("connections read what others have not committed (READ UNCOMMITTED): a copy would be told that work is done " +
				"which may still be rolled back, and the event be lost; choose READ COMMITTED or a stricter level")
		}
	}
	return rows.Err()
}
