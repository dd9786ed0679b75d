package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
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
	sql := language{prefix: prefix, Key: "`key`", Passed: ", token = LAST_INSERT_ID(token)", Locked: " FOR UPDATE"}.statement
	return dialect{
		statements: statementsMySQL(sql),
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
		writable:   writableMySQL(prefix),
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

// statementsMySQL are what MySQL has texts of its own for: it has ON DUPLICATE KEY UPDATE, which locks the row that
// is there, exclusively and at once. To lock it for reading first, as a plain INSERT does, makes a deadlock of two
// copies that then want to write.
func statementsMySQL(sql func(string) statement) statements {
	s := common(sql).withDooms(sql, doomMySQL(sql))
	s.claim = sql(`
		INSERT INTO {{.}}claims (source, {{.Key}}, state, token, lease_until, event_type, digest, first_seen, updated_at, last_error, pinned)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @8, @9, @10, @11)
		ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(token)`)
	s.lockClaim = sql(`SELECT {{columns ""}} FROM {{.}}claims WHERE source = @1 AND {{.Key}} = @2{{.Locked}}`)
	s.takeOver = sql(`
		UPDATE {{.}}claims SET state = @4, token = LAST_INSERT_ID(token + 1), lease_until = @5, event_type = @6, digest = @7, updated_at = @8, pinned = @11
		WHERE source = @1 AND {{.Key}} = @2 AND token = @3 AND state = @9 AND first_seen = @10 AND pinned = @12 AND {{claimable "" "@8"}}`)
	s.leave = sql(`
		UPDATE {{.}}claims SET state = @3, lease_until = NULL, event_type = @6, digest = coalesce(@7, digest), updated_at = @9,
			last_error = @10, pinned = IF(pinned = 0, @11, pinned), token = LAST_INSERT_ID(greatest(token, @4))
		WHERE source = @1 AND {{.Key}} = @2 AND {{open "" "@7"}} AND ((token < @4 AND {{claimable "" "@9"}})
			OR (token = @4 AND ({{repeatable "" "@3"}}
				OR (state = 'done' AND first_seen = @8 AND updated_at = @12))))`)
	s.keep = sql(`
		REPLACE INTO {{.}}responses (source, {{.Key}}, token, status, header, body)
		SELECT source, {{.Key}}, token, @3, @4, @5 FROM {{.}}claims WHERE source = @1 AND {{.Key}} = @2 AND state = 'done'`)
	// A guard reports the row that it leaves as it is: 1, by way of a column, so that no server works it out
	// in advance.
	const left = `IF(LAST_INSERT_ID(1 + 0 * updated_at), updated_at, NULL)`
	// An assignment sees the ones before it: the condition comes first, and the kind changes last.
	s.newest = sql(`
		INSERT INTO {{.}}versions (resource, version, updated_at, kind) VALUES (@1, @2, @3, @4)
		ON DUPLICATE KEY UPDATE
			updated_at = IF(kind <> VALUES(kind) OR VALUES(version) > version OR VALUES(version) = version AND kind = 'time',
				VALUES(updated_at), ` + left + `),
			version = IF(kind <> VALUES(kind), VALUES(version), greatest(version, VALUES(version))),
			kind = VALUES(kind)`)
	s.transition = sql(`
		INSERT INTO {{.}}states (entity, state, updated_at) VALUES (@1, IF(CAST(@2 AS BINARY) = '', @3, ''), @4)
		ON DUPLICATE KEY UPDATE
			updated_at = IF(state = @2, VALUES(updated_at), ` + left + `),
			state = IF(state = @2, @3, state)`)
	s.enqueue = sql(`
		INSERT INTO {{.}}effects (source, {{.Key}}, step, name, payload, due_at, enqueued_at, updated_at, last_error)
		VALUES (@1, @2, @3, @4, @5, @6, @7, @7, '')`)
	s.lockEffects = sql(`
		SELECT {{.Effect}} FROM {{.}}effects WHERE id IN ({ids}) AND due_at <= @1 AND (state <> 'processing' OR FIND_IN_SET(id, @2) > 0)
		FOR UPDATE SKIP LOCKED`)
	s.takeEffects = sql(`UPDATE {{.}}effects SET {{begun}}, due_at = @2, updated_at = @1 WHERE id IN ({ids})`)
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

// traceMySQL leaves a row if there is none, and otherwise changes the one that is there.
func traceMySQL(d dialect, ctx context.Context, q querier, failed hookonce.Claim, own torn) (recorded, opened bool, err error) {
	there, err := reported(run(ctx, q, d.claim, d.row(failed)...))
	if err != nil || there == 0 {
		return err == nil, false, err
	}
	changed, err := reported(run(ctx, q, d.leave, append(d.row(failed), d.nullable(own.made))...))
	return changed > 0, false, err
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
func takeMySQL(d dialect, ctx context.Context, on session, seen due, now, lease time.Time) (taken []hookonce.QueuedEffect, err error) {
	err = inTx(ctx, on, func(tx *sql.Tx) (err error) {
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

// doomMySQL looks first. Claims and effects are locked by that, in the order of their age, so that purges take turns.
// Versions and states are not, because without an index all of them would be; their age is looked at again.
func doomMySQL(sql func(string) statement) func(*doom, purged, string) {
	return func(d *doom, p purged, chosen string) {
		switch {
		case p.claims():
			d.look = sql("SELECT CONCAT('0x', HEX({{.Key}})) " + chosen + " FOR UPDATE")
			d.along = sql(`DELETE FROM {{.}}responses WHERE source = @1 AND {{.Key}} IN ({ids})`)
			d.rows = sql(`DELETE FROM {{.}}claims WHERE source = @1 AND {{.Key}} IN ({ids})`)
		case p.sourced:
			d.look = sql(`SELECT CAST(id AS CHAR) ` + chosen + ` FOR UPDATE`)
			d.rows = sql(`DELETE FROM ` + p.table + ` WHERE source = @1 AND id IN ({ids})`)
		default:
			d.look = sql(`SELECT CONCAT('0x', HEX(` + p.key + `)) ` + chosen)
			d.rows = sql(`DELETE FROM ` + p.table + ` WHERE ` + p.key + ` IN ({ids}) AND updated_at >= @1 AND updated_at < @2`)
		}
	}
}

// purgeStep is how many keys stand in one statement.
const purgeStep = 1000

func purgeMySQL(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (n int64, err error) {
	for n < int64(limit) {
		step := min(purgeStep, limit-int(n))
		looked, gone, err := stepMySQL(ctx, db, d, args, step)
		n += gone
		if err != nil || looked < step {
			return n, err
		}
	}
	return n, nil
}

// stepMySQL returns how many rows it found, and how many of them it deleted.
func stepMySQL(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (looked int, gone int64, err error) {
	err = inTx(ctx, db, func(tx *sql.Tx) error {
		var keys []string
		err := each(ctx, tx, d.look, append(args, limit), func(scan func(...any) error) error {
			var key string
			err := scan(&key)
			keys = append(keys, key)
			return err
		})
		looked, gone = len(keys), 0
		if err != nil || looked == 0 {
			return err
		}
		ids := strings.Join(keys, ",")
		if d.along.text != "" {
			if _, err := run(ctx, tx, d.along.of(ids), args...); err != nil {
				return err
			}
		}
		gone, err = affected(run(ctx, tx, d.rows.of(ids), args...))
		return err
	})
	if err != nil {
		gone = 0
	}
	return looked, gone, err
}

// soundMySQL refuses settings of the connection, or the server, under which claims are not what they say. With AFTER_COMMIT,
// MariaDB's default, a commit that waits for a replica is there for all others to see already.
func soundMySQL(ctx context.Context, db *sql.DB) error {
	if err := soundGalera(ctx, db); err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, `SHOW SESSION VARIABLES WHERE Variable_name IN
		('autocommit', 'tx_isolation', 'transaction_isolation', 'tx_read_only', 'transaction_read_only',
		'rpl_semi_sync_master_enabled', 'rpl_semi_sync_master_wait_point', 'rpl_semi_sync_source_enabled', 'rpl_semi_sync_source_wait_point')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	set := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		set[name] = value
		switch {
		case name == "autocommit" && value != "ON":
			return errors.New("connections have autocommit off: claims under a lease, and the traces of failures, would be gone with " +
				"their connection; remove autocommit from the connection string, or init_connect from the server")
		case strings.HasSuffix(name, "_read_only") && value == "ON":
			return fmt.Errorf("transactions are read-only, so that nothing can be claimed: set %s to OFF for these connections or on the server, wherever it is on", name)
		case strings.EqualFold(value, "READ-UNCOMMITTED"):
			return errors.New("connections read what others have not committed (READ UNCOMMITTED): a copy would be told that work is done " +
				"which may still be rolled back, and the event be lost; choose READ COMMITTED or a stricter level")
		}
	}
	for _, semi := range []string{"rpl_semi_sync_master_", "rpl_semi_sync_source_"} {
		if point := semi + "wait_point"; set[semi+"enabled"] == "ON" && set[point] == "AFTER_COMMIT" {
			return fmt.Errorf("others see what is committed before a replica has it: a copy would be told that work is done which only this server has, "+
				"and the event be lost with the server; set %s to AFTER_SYNC (to switch semi-synchronous replication off loses more)", point)
		}
	}
	return rows.Err()
}

// writableMySQL refuses a server on which, and a user with whom, nothing can be written to any of the library's tables. What a
// user needs goes by what it does, so that one right of them is enough as far as can be told, and none is needed by who has
// nothing to do with claims. Statements that find no row are refused as others are, and write nothing.
func writableMySQL(prefix string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		try := func(statement string) error { _, err := db.ExecContext(ctx, statement); return err }
		if err := try("SELECT 1 FROM " + prefix + "claims WHERE FALSE"); denied(err) {
			return nil
		}
		var refused error
		for _, t := range []struct{ table, column string }{
			{"claims", "source"}, {"responses", "source"}, {"effects", "source"}, {"versions", "resource"}, {"states", "entity"},
		} {
			for _, form := range []string{"UPDATE %[1]s SET %[2]s = '' WHERE FALSE", "INSERT INTO %[1]s (%[2]s) SELECT '' FROM DUAL WHERE FALSE", "DELETE FROM %[1]s WHERE FALSE"} {
				err := try(fmt.Sprintf(form, prefix+t.table, t.column))
				switch {
				case mysqlNumber(err) == 1290 || mysqlNumber(err) == 1836: // ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE
					return fmt.Errorf("the server takes no writes, as one does that follows another, so that nothing can be claimed: connect to the one that does (read_only is off there): %w", err)
				case mysqlNumber(err) == 1143: // ER_COLUMNACCESS_DENIED_ERROR: it has rights to other columns
					return nil
				case !denied(err):
					return err
				}
				refused = err
			}
		}
		return fmt.Errorf("this user may read the tables and write to none, so that nothing can be claimed: GRANT what the program needs; "+
			`docs/operating.md lists it under "Rights in the database": %w`, refused)
	}
}

// denied tells ER_TABLEACCESS_DENIED_ERROR, which a user gets who has rights to none of the table's columns either.
func denied(err error) bool { return mysqlNumber(err) == 1142 }

func contendedMySQL(err error) contention {
	return map[int]contention{
		1205: held,  // ER_LOCK_WAIT_TIMEOUT
		1213: again, // ER_LOCK_DEADLOCK
		1020: again, // ER_CHECKREAD: MariaDB with innodb_snapshot_isolation
	}[mysqlNumber(err)]
}

// existsMySQL: ER_DUP_ENTRY.
func existsMySQL(err error) bool { return mysqlNumber(err) == 1062 }

// refusedMySQL: a server refuses a commit only where others have a say, in a cluster. Anything else at that
// moment, a shutdown for one, says nothing about what became of the transaction.
func refusedMySQL(err error) bool {
	return map[int]bool{
		1213: true, // ER_LOCK_DEADLOCK: a conflict in a Galera cluster
		3101: true, // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: a conflict in a replication group
	}[mysqlNumber(err)]
}

// unmigratedMySQL: the store's statements name nothing but its own tables.
func unmigratedMySQL(_ context.Context, _ querier, _ string, err error) bool {
	return map[int]bool{
		1146: true, // ER_NO_SUCH_TABLE
		1054: true, // ER_BAD_FIELD_ERROR
	}[mysqlNumber(err)]
}

var oversizeMySQL = oversize{fits: fitsMySQL, told: toldMySQL}

// smallPacket is below what any server is set to, so that most responses cost no question.
const smallPacket = 16 << 10

// fitsMySQL asks for the server's max_allowed_packet before a response is sent that may be above it. Such a one is
// answered with an error at best. When the connection is cut while it is written, which is so with larger ones, it
// looks like a server that is away, for ever.
// https://dev.mysql.com/doc/refman/8.0/en/packet-too-large.html
func fitsMySQL(ctx context.Context, q querier, r hookonce.Response) error {
	n := packet(r)
	if n <= smallPacket {
		return nil
	}
	var most int64
	_, err := one(ctx, q, statement{text: "SELECT @@max_allowed_packet"}, nil, &most)
	if err == nil && n > most {
		err = fmt.Errorf("%w (max_allowed_packet)", tooLarge(n, most))
	}
	return err
}

// packet is how many bytes it takes to send r, with what has to be escaped where it becomes a part of the statement.
func packet(r hookonce.Response) int64 {
	n := 1024 // the statement and the reference
	for _, b := range [][]byte{[]byte(header.Encode(r.Header)), r.Body} {
		n += len(b)
		for _, escaped := range []byte("\x00\n\r\x1a'\"\\") {
			n += bytes.Count(b, []byte{escaped})
		}
	}
	return int64(n)
}

func toldMySQL(err error) bool {
	switch mysqlNumber(err) {
	case 1153, // ER_NET_PACKET_TOO_LARGE
		1406: // ER_DATA_TOO_LONG
		return true
	case 1105: // ER_UNKNOWN_ERROR, for a parameter that was sent in pieces
		return strings.Contains(err.Error(), "max_allowed_packet")
	}
	return err != nil && strings.Contains(err.Error(), "packet for query is too large") // ErrPktTooLarge of the driver
}
