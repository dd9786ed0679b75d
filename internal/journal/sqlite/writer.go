package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
)

// writer is the connection that all writes go through, with its prepared statements. One goroutine
// uses it at a time.
type writer struct {
	*conn
	begin, commit, rollback                 *stmt
	savepoint, undo, release                *stmt
	insertEvent, insertBody, insertDelivery *stmt
	first, redrive, hasOpen                 *stmt
	coming, releaseKey                      *stmt
	due, body, lease, bury                  *stmt
	extend, done, kept, insertAttempt       *stmt
	orphans                                 *stmt
	purgeAttempts, purgeBodies, purgeEvents *stmt
	lastID, logLength                       *stmt
	probe, unprobe                          *stmt
}

// newWriter opens the connection and prepares everything; {{.}} in the texts is the prefix.
func newWriter(ctx context.Context, connector driver.Connector, prefix string) (*writer, error) {
	c, err := connect(ctx, connector)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: c}
	for _, p := range []struct {
		stmt **stmt
		text string
	}{
		{&w.begin, `BEGIN IMMEDIATE`}, {&w.commit, `COMMIT`}, {&w.rollback, `ROLLBACK`},
		{&w.savepoint, `SAVEPOINT entry`}, {&w.undo, `ROLLBACK TO entry`}, {&w.release, `RELEASE entry`},
		{&w.insertEvent, insertEventSQL}, {&w.insertBody, insertBodySQL}, {&w.insertDelivery, insertDeliverySQL},
		{&w.first, firstSQL}, {&w.redrive, redriveSQL}, {&w.hasOpen, hasOpenSQL},
		{&w.coming, comingSQL}, {&w.releaseKey, releaseKeySQL},
		{&w.due, dueSQL}, {&w.body, bodySQL}, {&w.lease, leaseSQL}, {&w.bury, burySQL},
		{&w.extend, extendSQL}, {&w.done, doneSQL}, {&w.kept, keptSQL}, {&w.insertAttempt, insertAttemptSQL},
		{&w.orphans, orphansSQL},
		{&w.purgeAttempts, purgeAttemptsSQL}, {&w.purgeBodies, purgeBodiesSQL}, {&w.purgeEvents, purgeEventsSQL},
		{&w.lastID, lastIDSQL},
		{&w.probe, probeSQL}, {&w.unprobe, unprobeSQL},
		{&w.logLength, `PRAGMA wal_checkpoint(NOOP)`},
	} {
		if *p.stmt, err = c.prepare(strings.ReplaceAll(p.text, "{{.}}", prefix)); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return w, nil
}

const insertEventSQL = `INSERT INTO {{.}}events (id, source, key, event_type, digest, received_at)
	VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (source, key) DO NOTHING`

const insertBodySQL = `INSERT INTO {{.}}bodies (event_id, header, body) VALUES (?, ?, ?)`

const insertDeliverySQL = `INSERT INTO {{.}}deliveries (event_id, destination, state, token, tries, due_at)
	VALUES (?, ?, ?, ?, ?, ?)`

// firstSQL finds what is stored under a key.
const firstSQL = `SELECT id, digest FROM {{.}}events WHERE source = ? AND key = ?`

const redriveSQL = `UPDATE {{.}}deliveries SET state = 'pending', tries = 0, due_at = ?
	WHERE event_id = ? AND state IN ('failed', 'dead')`

const hasOpenSQL = `SELECT 1 FROM {{.}}deliveries WHERE event_id = ? LIMIT 1`

// comingSQL finds where a delivery is still to begin.
const comingSQL = `SELECT destination FROM {{.}}deliveries WHERE event_id = ? AND state <> 'processing'`

const releaseKeySQL = `UPDATE {{.}}events SET key = NULL WHERE id = ?`

// dueSQL leaves the bodies alone: sorting would load all of them.
const dueSQL = `SELECT d.event_id, d.destination, d.token, d.tries,
		e.source, coalesce(e.key, ''), e.event_type, e.received_at
	FROM {{.}}deliveries d JOIN {{.}}events e ON e.id = d.event_id
	WHERE d.due_at <= ?1 AND (?2 IS NULL OR d.destination IN (SELECT value FROM json_each(?2)))
	ORDER BY d.due_at, d.event_id, d.destination LIMIT ?3`

const bodySQL = `SELECT header, body FROM {{.}}bodies WHERE event_id = ?`

const leaseSQL = `UPDATE {{.}}deliveries SET state = 'processing', token = token + 1, tries = tries + 1, due_at = ?
	WHERE event_id = ? AND destination = ?`

// burySQL parks a delivery that has nothing to deliver.
const burySQL = `UPDATE {{.}}deliveries SET state = 'dead', due_at = NULL, last_error = ?
	WHERE event_id = ? AND destination = ?`

const extendSQL = `UPDATE {{.}}deliveries SET due_at = ?
	WHERE event_id = ? AND destination = ? AND token = ? AND state = 'processing'`

const doneSQL = `DELETE FROM {{.}}deliveries
	WHERE event_id = ? AND destination = ? AND token = ? AND state = 'processing'`

// keptSQL records every outcome but done; handing work back takes its try back and keeps the last error.
const keptSQL = `UPDATE {{.}}deliveries SET state = ?4, due_at = ?5,
		tries = tries - (?4 = 'pending'), last_error = iif(?4 = 'pending', last_error, ?6)
	WHERE event_id = ?1 AND destination = ?2 AND token = ?3 AND state = 'processing'`

const insertAttemptSQL = `INSERT INTO {{.}}attempts
	(event_id, destination, token, outcome, status, error, started_at, duration_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const orphansSQL = `UPDATE {{.}}deliveries SET due_at = ? WHERE state = 'processing'`

// oldBodiesSQL are the oldest bodies that can go.
const oldBodiesSQL = `(SELECT b.event_id FROM {{.}}bodies b WHERE b.event_id < ?
	AND NOT EXISTS (SELECT 1 FROM {{.}}deliveries d WHERE d.event_id = b.event_id) ORDER BY b.event_id LIMIT ?)`

const purgeAttemptsSQL = `DELETE FROM {{.}}attempts WHERE event_id IN ` + oldBodiesSQL

const purgeBodiesSQL = `DELETE FROM {{.}}bodies WHERE event_id IN ` + oldBodiesSQL

const purgeEventsSQL = `DELETE FROM {{.}}events WHERE id IN (SELECT e.id FROM {{.}}events e WHERE e.id < ?
	AND NOT EXISTS (SELECT 1 FROM {{.}}deliveries d WHERE d.event_id = e.id)
	AND NOT EXISTS (SELECT 1 FROM {{.}}bodies b WHERE b.event_id = e.id) ORDER BY e.id LIMIT ?)`

const lastIDSQL = `SELECT coalesce(max(id), 0) FROM {{.}}events`

// probeSQL stores a body of no event: their identifiers begin at 1.
const probeSQL = `INSERT INTO {{.}}bodies (event_id, header, body) VALUES (0, x'', zeroblob(?))`

const unprobeSQL = `DELETE FROM {{.}}bodies WHERE event_id = 0`

// transaction runs f between BEGIN and COMMIT, or takes back everything that it did.
func (w *writer) transaction(f func(w *writer) error) error {
	if _, err := w.begin.exec(); err != nil {
		return err
	}
	err := f(w)
	if err == nil {
		_, err = w.commit.exec()
	}
	if err != nil {
		// SQLite may have rolled back by itself (disk full, I/O error); then this has nothing to do.
		_, _ = w.rollback.exec()
	}
	return err
}

// guarded runs f so that, when it fails, the transaction goes on as if f had not been.
func (w *writer) guarded(f func() error) error {
	if _, err := w.savepoint.exec(); err != nil {
		return err
	}
	failed := f()
	if failed != nil {
		if _, err := w.undo.exec(); err != nil {
			return err
		}
	}
	if _, err := w.release.exec(); err != nil {
		return err
	}
	return failed
}
