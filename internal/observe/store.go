package observe

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // driver sqlite

	"github.com/hookonce/hookonce/internal/ddl"
)

// Store has the observations in a database. It connects when it is first used, and is safe for concurrent use.
type Store struct {
	db      *sql.DB
	stands  atomic.Pointer[func() error] // see Guard
	dialect ddl.Dialect
	name    string // of the schema
	table   string
	// number writes the n-th parameter, time a time as the database has it, and read reads one.
	number func(n int) string
	time   func(time.Time) any
	read   func(any) time.Time
}

// OpenPostgres returns the store in a database, where the tables are in the schema called name.
func OpenPostgres(dsn, name string) (*Store, error) {
	prefix, err := ddl.Prefix(ddl.Postgres, name)
	if err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // each number of rows is another statement: none is worth preparing
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(2)
	db.SetConnMaxIdleTime(time.Minute)
	return &Store{
		db: db, dialect: ddl.Postgres, name: name, table: prefix + "observations",
		number: func(n int) string { return "$" + strconv.Itoa(n) },
		time:   func(t time.Time) any { return t },
		read:   func(v any) time.Time { t, _ := v.(time.Time); return t },
	}, nil
}

// OpenSQLite returns the store in a file, which it does not create. Close it before the journal's.
func OpenSQLite(path string, readOnly bool) (*Store, error) {
	prefix, err := ddl.Prefix(ddl.SQLite, "")
	if err != nil {
		return nil, err
	}
	q := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)", "synchronous(NORMAL)"}}
	if readOnly {
		q = url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	}
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(path)+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &Store{
		db: db, dialect: ddl.SQLite, table: prefix + "observations",
		number: func(n int) string { return "?" + strconv.Itoa(n) },
		time:   func(t time.Time) any { return t.UnixMicro() },
		read:   func(v any) time.Time { n, _ := v.(int64); return time.UnixMicro(n) },
	}, nil
}

// Guard has every insert ask check, before and after, whether what is stored is where a restart will find it.
func (s *Store) Guard(check func() error) { s.stands.Store(&check) }

// standing returns what the check of Guard says.
func (s *Store) standing() error {
	if check := s.stands.Load(); check != nil {
		return (*check)()
	}
	return nil
}

// Close ends the connections.
func (s *Store) Close() error { return s.db.Close() }

// Check returns an error that says what to do unless the tables are there, in this version.
func (s *Store) Check(ctx context.Context) error { return ddl.Check(ctx, s.db, s.dialect, s.name) }

// row is an observation with its identifier.
type row struct {
	id int64
	Observation
}

const columns = "id, source, received_at, kind, requests, key, type, digest, reason, status, failure, took, unheard"

const columnCount = 13

// insert writes rows. Rows that are there already stay as they are. When the store refuses rows for what they hold,
// the others are written and those are returned.
func (s *Store) insert(ctx context.Context, rows []row) (refused []row, err error) {
	if err = s.insertAll(ctx, rows); err == nil || len(rows) == 1 {
		return nil, err
	}
	if s.standing() != nil {
		return nil, err
	}
	if _, away := s.db.ExecContext(ctx, "SELECT id FROM "+s.table+" WHERE id = 0"); away != nil {
		return nil, err
	}
	for _, one := range rows {
		if s.insertAll(ctx, []row{one}) != nil {
			refused = append(refused, one)
		}
	}
	if len(refused) == len(rows) {
		return nil, err // it is not about what they hold
	}
	return refused, nil
}

func (s *Store) insertAll(ctx context.Context, rows []row) error {
	if err := s.standing(); err != nil {
		return err
	}
	var text strings.Builder
	args := make([]any, 0, len(rows)*columnCount)
	fmt.Fprintf(&text, "INSERT INTO %s (%s) VALUES ", s.table, columns)
	for i, o := range rows {
		for j := range columnCount {
			switch {
			case j > 0:
				text.WriteString(", ")
			case i > 0:
				text.WriteString("), (")
			default:
				text.WriteString("(")
			}
			text.WriteString(s.number(i*columnCount + j + 1))
		}
		digest := o.Digest
		if digest == nil {
			digest = []byte{}
		}
		args = append(args, o.id, o.Source, s.time(o.ReceivedAt), string(o.Kind), o.Requests, sql.NullString{String: o.Key, Valid: o.Key != ""},
			o.Type, digest, o.Reason, o.Status, o.Failure, o.Took.Microseconds(), o.Unheard)
	}
	text.WriteString(") ON CONFLICT (id) DO NOTHING")
	_, err := s.db.ExecContext(ctx, text.String(), args...)
	return cmp.Or(err, s.standing())
}

// Sources returns the names of the sources that anything is on record of.
func (s *Store) Sources(ctx context.Context) (names []string, err error) {
	err = s.each(ctx, "SELECT DISTINCT source FROM "+s.table+" ORDER BY source", nil, func(rows *sql.Rows) error {
		names = append(names, "")
		return rows.Scan(&names[len(names)-1])
	})
	return names, err
}

// Read calls each with what is on record of a source: all that has a key, by key and then by time, and before that
// what has none and was received since then.
func (s *Store) Read(ctx context.Context, source string, since time.Time, each func(Observation) error) error {
	query := "SELECT " + columns + " FROM " + s.table + " WHERE source = " + s.number(1) + " AND (key IS NOT NULL OR received_at >= " + s.number(2) + ")" +
		" ORDER BY key IS NOT NULL, key, received_at, id"
	return s.each(ctx, query, []any{source, s.time(since)}, func(rows *sql.Rows) error {
		var id, took int64
		var at any
		var key sql.NullString
		var o Observation
		err := rows.Scan(&id, &o.Source, &at, &o.Kind, &o.Requests, &key, &o.Type, &o.Digest, &o.Reason, &o.Status, &o.Failure, &took, &o.Unheard)
		if err != nil {
			return err
		}
		o.ReceivedAt, o.Key, o.Took = s.read(at), key.String, time.Duration(took)*time.Microsecond
		return each(o)
	})
}

// forgetStep is how many rows one statement deletes.
const forgetStep = 5000

// forget deletes what was received before that time, and the oldest rows beyond most.
func (s *Store) forget(ctx context.Context, source string, before time.Time, most int) error {
	return s.trim(ctx, source, "", before, most)
}

// forgetStrange deletes the oldest rows beyond most of those that are [Kind.strange].
func (s *Store) forgetStrange(ctx context.Context, source string, most int) error {
	return s.trim(ctx, source, fmt.Sprintf(" AND kind IN ('%s', '%s', '%s')", Refused, Handshake, Unread), time.Time{}, most)
}

// trim deletes the rows for which a condition holds, and which were received before that time or are the oldest beyond
// most.
func (s *Store) trim(ctx context.Context, source, condition string, before time.Time, most int) error {
	of := fmt.Sprintf("FROM %s WHERE source = %s%s", s.table, s.number(1), condition)
	var at any
	err := s.db.QueryRowContext(ctx, fmt.Sprintf("SELECT received_at %s ORDER BY received_at DESC LIMIT 1 OFFSET %d", of, most), source).Scan(&at)
	switch {
	case err == nil:
		if cut := s.read(at).Add(time.Microsecond); cut.After(before) {
			before = cut
		}
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if before.IsZero() {
		return nil
	}
	statement := fmt.Sprintf("DELETE FROM %s WHERE id IN (SELECT id %s AND received_at < %s LIMIT %d)", s.table, of, s.number(2), forgetStep)
	for n := int64(forgetStep); n == forgetStep; {
		res, err := s.db.ExecContext(ctx, statement, source, s.time(before))
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) (err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
