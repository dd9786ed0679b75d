package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
)

func sqlite(prefix string) dialect {
	mark, unmark := savepoint()
	return dialect{
		statements: statementsSQLite(language{prefix: prefix, placeholder: "?", Key: "key", returning: true}.statement),
		time:       micros,
		peeks:      true,
		decide:     decideSQLite,
		trace:      traceAtOnce,
		change:     changeReturning,
		alone:      true,
		mark:       mark,
		unmark:     unmark,
		committed:  committedClaim,
		applied:    wrote,
		take:       takeAtOnce,
		purge:      purgeSQLite,
		sound:      soundSQLite,
		contended:  contendedSQLite,
		oversize:   oversizeSQLite,
		exists:     never,
		refused:    refusedSQLite,
		unmigrated: unmigratedSQLite,
	}
}

func statementsSQLite(sql func(string) statement) statements {
	s := common(sql).withDooms(sql, doomSQLite(sql))
	// A row is taken over only if it is the one that was seen, with the same token, so that the digest
	// from before is known. A new row is proposed with the token 0, which no row has.
	s.claim = sql(`
		INSERT INTO {{.}}claims AS c (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
		VALUES (@1, @2, @3, 1, @4, @5, @6, @7, @7, @8)
		ON CONFLICT (source, key) DO UPDATE SET {{taken "c" "excluded.state" "excluded.lease_until" "excluded.updated_at" "excluded.event_type" "excluded.digest" "excluded.pinned <> 0"}}
		WHERE c.token = @9 AND c.first_seen = @10 AND {{claimable "c" "excluded.updated_at"}} AND {{open "c" "excluded.digest"}}
		{{.ReturningClaim}}`)
	s.takeEffects = sql(`
		UPDATE {{.}}effects SET {{begun}}, due_at = @4, updated_at = @3
		WHERE id IN (SELECT value FROM json_each('[' || @1 || ']')) AND due_at <= @3
			AND (state <> 'processing' OR id IN (SELECT value FROM json_each('[' || @2 || ']')))
		{{.ReturningEffect}}`)
	s.leave = sql(`
		INSERT INTO {{.}}claims AS c (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @8, @9, @10, @11)
		ON CONFLICT (source, key) DO UPDATE SET
			state = excluded.state, token = excluded.token, lease_until = NULL, event_type = excluded.event_type,
			digest = coalesce(excluded.digest, c.digest), updated_at = excluded.updated_at, last_error = excluded.last_error,
			pinned = CASE WHEN c.pinned = 0 THEN excluded.pinned ELSE c.pinned END
		WHERE {{overwrites "c" "excluded" "@12"}}`)
	// In a transaction a claim is done from the start. A row of another state is somebody else's.
	s.keep = sql(`
		INSERT INTO {{.}}responses (source, key, token, status, header, body)
		SELECT source, key, token, CAST(@3 AS integer), CAST(@4 AS BLOB), CAST(@5 AS BLOB)
		FROM {{.}}claims WHERE source = @1 AND key = @2 AND state = 'done'
		ON CONFLICT (source, key) DO UPDATE SET
			token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body`)
	s.newest = sql(`
		INSERT INTO {{.}}versions AS v (resource, version, updated_at, kind) VALUES (@1, @2, @3, @4)
		ON CONFLICT (resource) DO UPDATE SET version = excluded.version, kind = excluded.kind, updated_at = excluded.updated_at
		WHERE {{supersedes "v" "excluded"}}`)
	// A conflict locks the row even where its condition is false. An entity that was never seen, and is not
	// to move from there, gets a row to be locked.
	s.transition = sql(`
		INSERT INTO {{.}}states AS s (entity, state, updated_at)
		VALUES (@1, CASE WHEN CAST(@2 AS text) = '' THEN CAST(@3 AS text) ELSE '' END, @4)
		ON CONFLICT (entity) DO UPDATE SET state = @3, updated_at = excluded.updated_at
		WHERE s.state = @2`)
	s.enqueue = sql(`
		INSERT INTO {{.}}effects (source, key, step, name, payload, due_at, enqueued_at, updated_at)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @7)
		ON CONFLICT (source, key, step) DO NOTHING`)
	return s
}

// decideSQLite proposes a new row first. Inside a transaction that makes the claim its first
// statement a writing one, which takes the write lock at once; a transaction that reads first can
// fail later because others wrote meanwhile. Only when there is a row already is it read, and taken
// over if it may be.
func decideSQLite(d dialect, ctx context.Context, q querier, p proposal) (ruling, error) {
	seen := hookonce.Claim{Ref: p.Ref}
	for range maxRounds {
		args := []any{p.Source, p.Key, string(p.state), d.nullable(p.lease), p.Type, digest(p.Digest), d.time(p.now), p.pinned(1), seen.Token, d.time(seen.FirstSeen)}
		mine := hookonce.Claim{Ref: p.Ref}
		won, err := one(ctx, q, d.claim, args, fields(&mine)...)
		if err != nil || won {
			return ruling{claim: mine, won: won, before: seen.Digest}, err
		}
		seen = hookonce.Claim{Ref: p.Ref}
		found, err := one(ctx, q, d.lookup, []any{p.Source, p.Key}, fields(&seen)...)
		if err != nil || (found && seen.VerdictFor(p.ClaimRequest, p.now) != hookonce.Acquired) {
			return ruling{claim: seen, before: seen.Digest}, err
		}
	}
	return ruling{}, errOvertaken
}

// doomSQLite chooses in a transaction, whose first statement takes the write lock: both find the same rows.
func doomSQLite(sql func(string) statement) func(*doom, purged, string) {
	return func(d *doom, p purged, chosen string) {
		where := ` WHERE (` + p.key + `) IN (SELECT ` + p.key + ` ` + chosen + `)`
		d.rows = sql(`DELETE FROM ` + p.table + where)
		if p.claims() {
			d.along = sql(`DELETE FROM {{.}}responses` + where)
		}
	}
}

func purgeSQLite(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (n int64, err error) {
	args = append(args, limit)
	err = inTx(ctx, db, func(tx *sql.Tx) error {
		if d.along.text != "" {
			if _, err := run(ctx, tx, d.along, args...); err != nil {
				return err
			}
		}
		n, err = affected(run(ctx, tx, d.rows, args...))
		return err
	})
	if err != nil {
		n = 0
	}
	return n, err
}

// soundSQLite refuses connections that read what others have not committed. That takes the shared cache as well,
// and the pragma has no use without it. https://www.sqlite.org/sharedcache.html#read_uncommitted_isolation_mode
// It also refuses connections each of which has a database of its own.
func soundSQLite(ctx context.Context, db *sql.DB) error {
	var dirty bool
	if err := db.QueryRowContext(ctx, `PRAGMA read_uncommitted`).Scan(&dirty); err != nil {
		return err
	}
	if dirty {
		return errors.New("connections read what others have not committed (PRAGMA read_uncommitted, with cache=shared): a copy would be told " +
			"that work is done which may still be rolled back, and the event be lost; remove the pragma")
	}
	return oneSQLite(ctx, db)
}

// secondConnection bounds how long is waited for one: handlers may have them all.
const secondConnection = 2 * time.Second

// oneSQLite returns an error if two connections of the pool have databases of their own, in memory or in a temporary file,
// which shows by the tables that one alone has. What cannot be told is not refused.
func oneSQLite(ctx context.Context, db *sql.DB) error {
	if db.Stats().MaxOpenConnections == 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, secondConnection)
	defer cancel()
	var tables [2]int
	for i := range tables {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil
		}
		defer conn.Close()
		var file string
		err = conn.QueryRowContext(ctx, `SELECT file, (SELECT count(*) FROM sqlite_master) FROM pragma_database_list WHERE name = 'main'`).Scan(&file, &tables[i])
		if err != nil || file != "" {
			return nil
		}
	}
	if tables[0] == tables[1] {
		return nil
	}
	return errors.New("each connection has a database of its own, in memory or in a temporary file, and most have no tables: " +
		"call SetMaxOpenConns(1), or open a file, or one memory for all (file::memory:?cache=shared)")
}

// SQLite's primary result codes, see https://www.sqlite.org/rescode.html.
const (
	sqliteError      = 1
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteTooBig     = 18
	sqliteConstraint = 19
)

// sqliteCode returns SQLite's primary result code, or 0. Drivers agree on no interface: modernc has
// a method Code, mattn a field of that name. Importing them for their types would force both, and a
// C compiler, on everybody.
func sqliteCode(err error) int {
	var coded interface {
		error
		Code() int
	}
	if errors.As(err, &coded) {
		return coded.Code() & 0xff
	}
	return numberIn(err, "Code") & 0xff
}

func contendedSQLite(err error) contention {
	return map[int]contention{sqliteBusy: again, sqliteLocked: again}[sqliteCode(err)]
}

// refusedSQLite: these leave nothing behind. After others, such as an error while writing to disk,
// what a later reader finds is open.
func refusedSQLite(err error) bool {
	code := sqliteCode(err)
	return code == sqliteBusy || code == sqliteLocked || code == sqliteConstraint
}

// unmigratedSQLite looks for itself: to SQLite a table that is missing is an error in the statement
// like any other.
func unmigratedSQLite(ctx context.Context, q querier, name string, err error) bool {
	return sqliteCode(err) == sqliteError && errors.Is(ddl.Check(ctx, q, ddl.SQLite, name), hookonce.ErrSchemaMissing)
}

var oversizeSQLite = oversize{
	fits: func(context.Context, querier, hookonce.Response) error { return nil },
	told: func(err error) bool { return sqliteCode(err) == sqliteTooBig },
}
