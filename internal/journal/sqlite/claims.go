package sqlite

import (
	"database/sql"
	"net/url"

	"modernc.org/sqlite"
)

// DB opens a further connection to the file, for what else is kept in it. Whoever uses it waits for its turn in this
// process: of several connections each would ask SQLite again and again whether it may write, and be let in by chance
// (beside a flood of claims some waited for seconds). It writes between the journal's transactions, and copies the log
// back by itself where the journal has nothing to write for long. Whoever relies on what they commit asks [Store.Standing] after the commit. Close it before the store.
func (s *Store) DB() (*sql.DB, error) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)"}}
	connector, err := sqlite.NewConnector("file:" + url.PathEscape(s.path) + "?" + q.Encode())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(rooted{connector, s})
	db.SetMaxOpenConns(1)
	return db, nil
}
