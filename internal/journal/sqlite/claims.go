package sqlite

import (
	"database/sql"
	"net/url"

	"modernc.org/sqlite"
)

// DB opens further connections to the file, for what else is kept in it. They write one after the other, and
// between the journal's transactions, and copy the log back by themselves where the journal has nothing to
// write for long. Whoever relies on what they commit asks [Store.Standing] after the commit. Close them before the store.
func (s *Store) DB() (*sql.DB, error) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)"}}
	connector, err := sqlite.NewConnector("file:" + url.PathEscape(s.path) + "?" + q.Encode())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(rooted{connector, s}), nil
}
