package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// MySQL's statements that write return no rows, and the number of rows that they changed leaves open
// whether a row was found that already had these values, or depends on a setting of the connection
// (CLIENT_FOUND_ROWS). What does tell is LAST_INSERT_ID(n): a statement that evaluates it for a row reports
// n as the "insert id" of its answer, and one that touches no row, or inserts a fresh one, reports 0.
// https://dev.mysql.com/doc/refman/8.0/en/information-functions.html#function_last-insert-id
//
// A transaction reads from a snapshot under REPEATABLE READ, the default, and the first plain SELECT makes
// it. So nothing here reads plainly before the claim is decided: the handler's snapshot is then as new as
// the claim. Locking reads see what is committed, and make no snapshot.
// https://dev.mysql.com/doc/refman/8.0/en/innodb-consistent-read.html
func mysql(prefix string) dialect {
	mark, unmark := savepoint()
	sql := language{key: "`key`", passed: ", token = LAST_INSERT_ID(token)", locked: " FOR UPDATE"}.prefixed(prefix)
	return dialect{
		statements: common(sql).withDuplicates(sql).withDooms(sql, doomMySQL(sql)),
		time:       micros,
		peeks:      true,
		limit: func(wait time.Duration) setting {
			return setting{
				impose: fmt.Sprintf("@hookonce_wait = @@SESSION.innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = %d", seconds(wait)),
				lift:   "SESSION innodb_lock_wait_timeout = @hookonce_wait",
			}
		},
		alone: true,
		// A deadlock ends the whole transaction on the server, and many statements commit it in passing. What the
		// handler does after that would be committed statement by statement.
		hold: setting{
			impose: "@hookonce_autocommit = @@SESSION.autocommit, SESSION autocommit = 0",
			lift:   "SESSION autocommit = @hookonce_autocommit",
		},
		decide:     decideMySQL,
		trace:      traceMySQL,
		change:     changeMySQL,
		mark:       mark,
		unmark:     unmark,
		committed:  committedClaim,
		applied:    appliedMySQL,
		take:       takeMySQL,
		purge:      purgeMySQL,
		sound:      soundMySQL,
		contended:  contendedMySQL,
		oversize:   oversizeMySQL,
		exists:     existsMySQL,
		refused:    refusedMySQL,
		unmigrated: unmigratedMySQL,
	}
}

// seconds is the form of innodb_lock_wait_timeout, which is at least 1: the next whole number.
func seconds(wait time.Duration) int64 {
	whole := int64(wait / time.Second)
	if wait%time.Second > 0 {
		whole++
	}
	return max(1, whole)
}

// withDuplicates adds the statements that MySQL has texts of its own for: it has ON DUPLICATE KEY UPDATE,
// which locks the row that is there, exclusively and at once. To lock it for reading first, as a plain
// INSERT does, makes a deadlock of two copies that then want to write.
func (s statements) withDuplicates(sql func(string) statement) statements {
	s.claim = sql(`
		INSERT INTO {claims} (source, {key}, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @8, @9, @10, @11)
		ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(token)`)
	s.lockClaim = sql(`SELECT {claim} FROM {claims} WHERE source = @1 AND {key} = @2{locked}`)
	const claimable = `(state IN ('failed', 'dead') OR (state = 'processing' AND lease_until <= `
	s.takeOver = sql(`
		UPDATE {claims} SET state = @4, token = LAST_INSERT_ID(token + 1), lease_until = @5, event_type = @6, digest = @7, updated_at = @8, pinned = @11
		WHERE source = @1 AND {key} = @2 AND token = @3 AND state = @9 AND first_seen = @10 AND pinned = @12 AND ` + claimable + `@8))`)
	s.leave = sql(`
		UPDATE {claims} SET state = @3, lease_until = NULL, event_type = @6, digest = coalesce(@7, digest), updated_at = @9,
			last_error = @10, pinned = IF(pinned = 0, @11, pinned), token = LAST_INSERT_ID(greatest(token, @4))
		WHERE source = @1 AND {key} = @2 AND (pinned = 0 OR coalesce(digest = @7, TRUE)) AND ((token < @4 AND ` + claimable + `@9)))
			OR (token = @4 AND (state = 'failed' OR (state = 'dead' AND @3 = 'dead')
				OR (state = 'done' AND first_seen = @8 AND updated_at = @12))))`)
	s.keep = sql(`
		REPLACE INTO {responses} (source, {key}, token, status, header, body)
		SELECT source, {key}, token, @3, @4, @5 FROM {claims} WHERE source = @1 AND {key} = @2 AND state = 'done'`)
	// A guard reports the row that it leaves as it is: 1, by way of a column, so that no server works it out
	// in advance.
	const left = `IF(LAST_INSERT_ID(1 + 0 * updated_at), updated_at, NULL)`
	// An assignment sees the ones before it: the condition comes first, and the kind changes last.
	s.newest = sql(`
		INSERT INTO {versions} (resource, version, updated_at, kind) VALUES (@1, @2, @3, @4)
		ON DUPLICATE KEY UPDATE
			updated_at = IF(kind <> VALUES(kind) OR VALUES(version) > version OR VALUES(version) = version AND kind = 'time',
				VALUES(updated_at), ` + left + `),
			version = IF(kind <> VALUES(kind), VALUES(version), greatest(version, VALUES(version))),
			kind = VALUES(kind)`)
	s.transition = sql(`
		INSERT INTO {states} (entity, state, updated_at) VALUES (@1, IF(CAST(@2 AS BINARY) = '', @3, ''), @4)
		ON DUPLICATE KEY UPDATE
			updated_at = IF(state = @2, VALUES(updated_at), ` + left + `),
			state = IF(state = @2, @3, state)`)
	s.enqueue = sql(`
		INSERT INTO {effects} (source, {key}, step, name, payload, due_at, enqueued_at, updated_at, last_error)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @7, '')`)
	s.lockEffects = sql(`
		SELECT {effect} FROM {effects} WHERE id IN ({ids}) AND due_at <= @1 AND (state <> 'processing' OR FIND_IN_SET(id, @2) > 0)
		FOR UPDATE SKIP LOCKED`)
	s.takeEffects = sql(`UPDATE {effects} SET {begun}, due_at = @2, updated_at = @1 WHERE id IN ({ids})`)
	return s
}

// reported returns what a statement passed through LAST_INSERT_ID; 0 if nothing.
func reported(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// decideMySQL proposes a new row. If there is one already, it is read under its lock, and taken over if it
// may be and is still the same: outside a transaction each statement is on its own.
func decideMySQL(d dialect, ctx context.Context, q querier, p proposal) (ruling, error) {
	for range maxRounds {
		r := ruling{claim: p.fresh(), won: true}
		there, err := reported(run(ctx, q, d.claim, d.row(r.claim)...))
		if err != nil || there == 0 {
			return r, err
		}
		seen := hookonce.Claim{Ref: p.Ref}
		found, err := one(ctx, q, d.lockClaim, []any{p.Source, p.Key}, fields(&seen)...)
		if err != nil || (found && seen.VerdictFor(p.ClaimRequest, p.now) != hookonce.Acquired) {
			return ruling{claim: seen, before: seen.Digest}, err
		}
		r = ruling{claim: p.over(seen), won: true, before: seen.Digest}
		c := r.claim
		took, err := reported(run(ctx, q, d.takeOver, c.Source, c.Key, seen.Token,
			string(c.State), d.nullable(c.Lease), c.Type, digest(c.Digest), d.time(c.UpdatedAt), string(seen.State), d.time(seen.FirstSeen), c.Pinned, seen.Pinned))
		if err != nil || took > 0 {
			return r, err
		}
	}
	return ruling{}, errOvertaken
}

// fresh is the claim under a key that was never seen.
func (p proposal) fresh() hookonce.Claim {
	return hookonce.Claim{
		Ref: p.Ref, State: p.state, Token: 1, Lease: p.lease, Type: p.Type, Digest: p.Digest, FirstSeen: p.now, UpdatedAt: p.now,
		Pinned: p.pinned(1),
	}
}

// over is the claim that takes over the one that was seen. It keeps what a later copy does not say.
func (p proposal) over(seen hookonce.Claim) hookonce.Claim {
	c := seen
	c.State, c.Token, c.Lease, c.UpdatedAt = p.state, seen.Token+1, p.lease, p.now
	c.Pinned = cmp.Or(seen.Pinned, p.pinned(c.Token))
	if p.Type != "" {
		c.Type = p.Type
	}
	if len(p.Digest) > 0 {
		c.Digest = p.Digest
	}
	return c
}

// traceMySQL leaves a row if there is none, and otherwise changes the one that is there.
func traceMySQL(d dialect, ctx context.Context, q querier, failed hookonce.Claim, made time.Time) (recorded bool, err error) {
	there, err := reported(run(ctx, q, d.claim, d.row(failed)...))
	if err != nil || there == 0 {
		return err == nil, err
	}
	changed, err := reported(run(ctx, q, d.leave, append(d.row(failed), d.nullable(made))...))
	return changed > 0, err
}

// changeMySQL reads the row after it was changed. Outside a transaction that may be later than the change.
func changeMySQL(ctx context.Context, q querier, c change, dest ...any) (applied bool, err error) {
	id, err := reported(run(ctx, q, c.statement, c.args...))
	if err != nil || id == 0 {
		return false, err
	}
	_, err = one(ctx, q, c.read, c.readArgs, dest...)
	return true, err
}

// appliedMySQL: these statements report the row that they leave as it is.
func appliedMySQL(result sql.Result) (bool, error) {
	left, err := reported(result, nil)
	return left == 0, err
}

// takeMySQL leases in a transaction, in which it passes over rows that others have locked.
func takeMySQL(d dialect, ctx context.Context, db *sql.DB, seen due, now, lease time.Time) (taken []hookonce.QueuedEffect, err error) {
	err = inTx(ctx, db, func(tx *sql.Tx) (err error) {
		if taken, err = effects(ctx, tx, d.lockEffects.of(list(seen.ids)), d.time(now), list(seen.suspects)); err != nil || len(taken) == 0 {
			return err
		}
		free := make([]int64, len(taken))
		for i := range taken {
			e := &taken[i]
			if e.State == hookonce.StateProcessing {
				e.Deaths++
			} else {
				e.Tries++
			}
			e.State, e.Due, e.Lease, e.Token = hookonce.StateProcessing, time.Time{}, lease, e.Token+1
			free[i] = e.ID
		}
		_, err = run(ctx, tx, d.takeEffects.of(list(free)), d.time(now), d.time(lease))
		return err
	})
	return taken, err
}

// of returns the statement about the rows with these keys, as they are written in one. MySQL takes no list as one parameter.
func (s statement) of(ids string) statement {
	s.text = strings.ReplaceAll(s.text, "{ids}", ids)
	return s
}
