package sqlite

import "database/sql"

// DB opens further connections to the file, for what else is kept in it. They write one after the other, and
// between the journal's transactions. Close them before the store.
func (s *Store) DB() (*sql.DB, error) {
	connector, err := newConnector(s.path)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
