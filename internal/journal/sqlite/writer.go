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
	begin, commit, rollback                   *stmt
	savepoint, undo, release                  *stmt
	insertEvent, insertBody, insertDelivery   *stmt
	first, redrive, hasOpen                   *stmt
	coming, releaseKey, supplyDigest          *stmt
	ownLogical, owner, insertLogicalDuplicate *stmt
	openGroup, groups, turn, moveGroup        *stmt
	dropGroup, freeGroup                      *stmt
	targets, due, body, lease, work, bury     *stmt
	freeChoices, groupChoices                 *stmt
	extend, done, kept, insertAttempt         *stmt
	raise, insertAnswer, end, tried           *stmt
	orphans, orphanGroups                     *stmt
	lastID, logLength, pageCount              *stmt
	probe, unprobe                            *stmt
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
		{&w.coming, comingSQL}, {&w.releaseKey, releaseKeySQL}, {&w.supplyDigest, supplyDigestSQL},
		{&w.ownLogical, ownLogicalSQL}, {&w.owner, ownerSQL}, {&w.insertLogicalDuplicate, insertLogicalDuplicateSQL},
		{&w.openGroup, openGroupSQL}, {&w.groups, groupsSQL}, {&w.turn, turnSQL}, {&w.moveGroup, moveGroupSQL},
		{&w.dropGroup, dropGroupSQL}, {&w.freeGroup, freeGroupSQL},
		{&w.targets, targetsSQL}, {&w.due, dueSQL}, {&w.body, bodySQL}, {&w.lease, leaseSQL}, {&w.work, workSQL}, {&w.bury, burySQL},
		{&w.freeChoices, freeChoicesSQL}, {&w.groupChoices, groupChoicesSQL},
		{&w.extend, extendSQL}, {&w.done, doneSQL}, {&w.kept, keptSQL}, {&w.insertAttempt, insertAttemptSQL},
		{&w.raise, raiseSQL}, {&w.insertAnswer, insertAnswerSQL},
		{&w.end, endSQL}, {&w.tried, triedSQL},
		{&w.orphans, orphansSQL}, {&w.orphanGroups, orphanGroupsSQL},
		{&w.lastID, lastIDSQL},
		{&w.probe, probeSQL}, {&w.unprobe, unprobeSQL},
		{&w.logLength, `PRAGMA wal_checkpoint(NOOP)`}, {&w.pageCount, `PRAGMA page_count`},
	} {
		if *p.stmt, err = c.prepare(strings.ReplaceAll(p.text, "{{.}}", prefix)); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return w, nil
}

// transaction runs f between BEGIN and COMMIT, or takes back everything that it did, also when f panics:
// the connection is the only one that writes, and inside a transaction it could not begin another.
func (w *writer) transaction(f func(w *writer) error) error {
	if _, err := w.begin.exec(); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			// SQLite may have rolled back by itself (disk full, I/O error); then this has nothing to do.
			_, _ = w.rollback.exec()
		}
	}()
	if err := f(w); err != nil {
		return err
	}
	_, err := w.commit.exec()
	committed = err == nil
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
