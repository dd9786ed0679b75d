package sqlstore

import (
	"context"
	"errors"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/schema"
)

func sqlite(prefix string) dialect {
	mark, unmark := savepoint()
	sql := language{placeholder: "?", key: "key", returning: true}.prefixed(prefix)
	d := dialect{
		statements: common(sql).withConflicts(sql, "BLOB").withDooms(sql, doomSQLite(sql)),
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
	// A row is taken over only if it is the one that was seen, with the same token, so that the digest
	// from before is known. A new row is proposed with the token 0, which no row has.
	d.claim = sql(`
		INSERT INTO {claims} AS c (source, key, state, token, lease_until, event_type, digest, first_seen, updated_at, pinned)
		VALUES (@1, @2, @3, 1, @4, @5, @6, @7, @7, @8)
		ON CONFLICT (source, key) DO UPDATE SET ` + takeOver + `
		WHERE c.token = @9 AND c.first_seen = @10 AND {claimable} AND {open}
		{returning claim}`)
	d.takeEffects = sql(`
		UPDATE {effects} SET {begun}, due_at = @4, updated_at = @3
		WHERE id IN (SELECT value FROM json_each('[' || @1 || ']')) AND due_at <= @3
			AND (state <> 'processing' OR id IN (SELECT value FROM json_each('[' || @2 || ']')))
		{returning effect}`)
	return d
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
	return sqliteCode(err) == sqliteError && errors.Is(schema.Check(ctx, q, schema.SQLite, name), hookonce.ErrSchemaMissing)
}
