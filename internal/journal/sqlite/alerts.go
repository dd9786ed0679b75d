package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// ChangeAlerts implements [journal.Store]. Who has the turn reads what is there, since nobody else writes; the file is written
// only if something changes.
func (s *Store) ChangeAlerts(ctx context.Context, try bool, change func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	if !try {
		s.alerting.Lock()
	} else if !s.alerting.TryLock() {
		return false, nil
	}
	defer s.alerting.Unlock()
	book, err := s.Alerts(ctx)
	if err != nil {
		return false, err
	}
	changes, err := change(book)
	if err != nil {
		return false, err
	}
	if changes.Empty() {
		return true, nil
	}
	err = s.write(ctx, "changing alerts", func(w *writer) error { return s.changeAlerts(w, changes) })
	return err == nil, err
}

const putAlertSQL = `INSERT OR REPLACE INTO {{.}}alerts (rule, subject, state, severity, transition, since, fired_at, seen_at, told_at, told_as,
	cause, body, ack_by, ack_reason, ack_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const recordAlertSQL = `INSERT INTO {{.}}alert_records (rule, subject, at, event, transition, severity, text, done_by)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const putNoticeSQL = `INSERT INTO {{.}}alert_notices (address, rule, subject, transition, due_at, leased, since, tries, token, body)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (address, rule, subject, transition) DO UPDATE SET due_at = excluded.due_at, leased = excluded.leased,
		since = excluded.since, tries = excluded.tries, body = excluded.body`

// changeAlerts writes what changed.
func (s *Store) changeAlerts(w *writer, c *journal.AlertChanges) error {
	exec := func(text string, args ...any) error {
		_, err := w.once(s.in(text), args...)
		return err
	}
	for _, a := range c.Put {
		if err := exec(putAlertSQL, a.Rule, a.Subject, string(a.State), a.Severity, a.Transition, a.Since.UnixMicro(), moment(a.Fired), moment(a.Seen),
			moment(a.Told), a.ToldAs, a.Cause, content(a.Body), a.AckBy, a.AckReason, moment(a.AckAt)); err != nil {
			return err
		}
	}
	for _, id := range c.Unsilence {
		if err := exec(`DELETE FROM {{.}}alert_silences WHERE id = ?`, id); err != nil {
			return err
		}
	}
	for i := range c.Silence {
		if err := s.silence(w, &c.Silence[i]); err != nil {
			return err
		}
	}
	for _, r := range c.Records {
		if err := s.recordAlert(w, &r); err != nil {
			return err
		}
	}
	for _, n := range c.Notices {
		if err := exec(`DELETE FROM {{.}}alert_notices WHERE address = ? AND rule = ? AND subject = ? AND transition < ? AND NOT leased`,
			n.Address, n.Rule, n.Subject, n.Transition); err != nil {
			return err
		}
		if err := exec(putNoticeSQL, n.Address, n.Rule, n.Subject, n.Transition, n.Due.UnixMicro(), number(n.Leased),
			n.Since.UnixMicro(), int64(n.Tries), n.Token, content(n.Body)); err != nil {
			return err
		}
	}
	for _, a := range c.Audits {
		if _, err := s.audit(w, a); err != nil {
			return err
		}
	}
	if !c.Abandon.IsZero() {
		if err := exec(`DELETE FROM {{.}}alert_notices WHERE since < ?`, c.Abandon.UnixMicro()); err != nil {
			return err
		}
	}
	if c.Forget.IsZero() {
		return nil
	}
	for _, text := range forgetAlerts {
		if err := exec(text, c.Forget.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}

// forgetAlerts are the statements that delete what is older than a time.
var forgetAlerts = []string{
	`DELETE FROM {{.}}alert_records WHERE at < ?`,
	`DELETE FROM {{.}}alert_silences WHERE until < ?`,
	`DELETE FROM {{.}}alerts AS a WHERE state = 'resolved' AND since < ?
		AND NOT EXISTS (SELECT 1 FROM {{.}}alert_notices n WHERE n.rule = a.rule AND n.subject = a.subject)`,
}

func (s *Store) silence(w *writer, n *journal.Silence) error {
	const text = `INSERT INTO {{.}}alert_silences (rule, subject, at, until, done_by, reason) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`
	return w.with(s.in(text), func(insert *stmt) error {
		return insert.query(func(row []driver.Value) error { n.ID = row[0].(int64); return nil },
			n.Rule, n.Subject, n.At.UnixMicro(), n.Until.UnixMicro(), n.By, n.Reason)
	})
}

func (s *Store) recordAlert(w *writer, r *journal.AlertRecord) error {
	_, err := w.once(s.in(recordAlertSQL), r.Rule, r.Subject, r.At.UnixMicro(), string(r.Event), r.Transition, r.Severity, r.Text, r.By)
	return err
}

// moment is NULL for the zero time.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// number is how SQLite has a bool.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// content is never NULL.
func content(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// orZero is the zero time for NULL.
func orZero(t sql.NullInt64) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return time.UnixMicro(t.Int64)
}

// Alerts implements [journal.Store].
func (s *Store) Alerts(ctx context.Context) (book *journal.AlertBook, err error) {
	err = s.read(ctx, "reading alerts", func(tx *sql.Tx) error {
		book, err = s.alertBook(ctx, tx)
		return err
	})
	return book, err
}

// alertBook reads what is remembered.
func (s *Store) alertBook(ctx context.Context, tx *sql.Tx) (*journal.AlertBook, error) {
	b := &journal.AlertBook{Waiting: map[string]int{}}
	var err error
	b.Alerts, err = rows(ctx, tx, s.in(`SELECT rule, subject, state, severity, transition, since, fired_at, seen_at, told_at, told_as,
		cause, body, ack_by, ack_reason, ack_at FROM {{.}}alerts ORDER BY rule, subject`), nil, func(row scanner) (a journal.Alert, err error) {
		var since int64
		var fired, seen, told, ack sql.NullInt64
		err = row.Scan(&a.Rule, &a.Subject, &a.State, &a.Severity, &a.Transition, &since, &fired, &seen, &told, &a.ToldAs,
			&a.Cause, &a.Body, &a.AckBy, &a.AckReason, &ack)
		a.Since, a.Fired, a.Seen, a.Told, a.AckAt = time.UnixMicro(since), orZero(fired), orZero(seen), orZero(told), orZero(ack)
		return a, err
	})
	if err != nil {
		return nil, err
	}
	b.Silences, err = rows(ctx, tx, s.in(`SELECT id, rule, subject, at, until, done_by, reason FROM {{.}}alert_silences ORDER BY id`), nil,
		func(row scanner) (n journal.Silence, err error) {
			var at, until int64
			err = row.Scan(&n.ID, &n.Rule, &n.Subject, &at, &until, &n.By, &n.Reason)
			n.At, n.Until = time.UnixMicro(at), time.UnixMicro(until)
			return n, err
		})
	if err != nil {
		return nil, err
	}
	_, err = rows(ctx, tx, s.in(`SELECT address, count(*) FROM {{.}}alert_notices GROUP BY address`), nil, func(row scanner) (n int, err error) {
		var address string
		err = row.Scan(&address, &n)
		b.Waiting[address] = n
		return n, err
	})
	return b, err
}

// AlertHistory implements [journal.Store].
func (s *Store) AlertHistory(ctx context.Context, f journal.AlertFilter, before int64, limit int) ([]journal.AlertRecord, error) {
	const text = `SELECT id, rule, subject, at, event, transition, severity, text, done_by FROM {{.}}alert_records
		WHERE (?1 = 0 OR id < ?1) AND (?2 = '' OR rule = ?2) AND (?3 = '' OR subject = ?3)
			AND (?5 = '[]' OR event IN (SELECT value FROM json_each(?5))) ORDER BY id DESC LIMIT ?4`
	events, err := json.Marshal(append([]journal.AlertEvent{}, f.Events...))
	if err != nil {
		return nil, err
	}
	all, err := rows(ctx, s.readers, s.in(text), []any{before, f.Rule, f.Subject, limit, string(events)}, func(row scanner) (r journal.AlertRecord, err error) {
		var at int64
		err = row.Scan(&r.ID, &r.Rule, &r.Subject, &at, &r.Event, &r.Transition, &r.Severity, &r.Text, &r.By)
		r.At = time.UnixMicro(at)
		return r, err
	})
	return all, failed("reading what happened to alerts", err)
}

// notices reads those of some addresses.
func (s *Store) notices(ctx context.Context, addresses []string) (all journal.Notices, err error) {
	const text = `SELECT address, rule, subject, transition, due_at, leased, since, tries, token, body FROM {{.}}alert_notices
		WHERE address = ?`
	seen := map[string]bool{}
	for _, address := range addresses {
		if seen[address] {
			continue
		}
		seen[address] = true
		of, err := rows(ctx, s.readers, s.in(text), []any{address}, func(row scanner) (n journal.Notice, err error) {
			var due, since int64
			err = row.Scan(&n.Address, &n.Rule, &n.Subject, &n.Transition, &due, &n.Leased, &since, &n.Tries, &n.Token, &n.Body)
			n.Due, n.Since = time.UnixMicro(due), time.UnixMicro(since)
			return n, err
		})
		if err != nil {
			return nil, failed("looking for what has to be told", err)
		}
		all = append(all, of...)
	}
	return all, nil
}

// TakeNotices implements [journal.Store].
func (s *Store) TakeNotices(ctx context.Context, now, lease time.Time, addresses []string, limit int) ([]journal.Notice, error) {
	s.alerting.Lock()
	defer s.alerting.Unlock()
	all, err := s.notices(ctx, addresses)
	if err != nil {
		return nil, err
	}
	taken, gone := all.Take(now, lease, limit)
	if len(taken)+len(gone) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "taking what has to be told", func(w *writer) error {
		for _, n := range gone {
			if err := s.settleNotice(w, n, nil); err != nil {
				return err
			}
		}
		for _, n := range taken {
			if err := s.settleNotice(w, n, &n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// settleNotice writes one notice in the place of what was there, nil: none.
func (s *Store) settleNotice(w *writer, old journal.Notice, left *journal.Notice) error {
	const which = ` WHERE address = ?1 AND rule = ?2 AND subject = ?3 AND transition = ?4`
	args := []any{old.Address, old.Rule, old.Subject, old.Transition}
	text := `DELETE FROM {{.}}alert_notices` + which
	if left != nil {
		text = `UPDATE {{.}}alert_notices SET due_at = ?5, leased = ?6, tries = ?7, token = ?8` + which
		args = append(args, left.Due.UnixMicro(), number(left.Leased), int64(left.Tries), left.Token)
	}
	_, err := w.once(s.in(text), args...)
	return err
}

// FinishNotices implements [journal.Store].
func (s *Store) FinishNotices(ctx context.Context, outcomes []journal.NoticeOutcome) (applied []bool, err error) {
	s.alerting.Lock()
	defer s.alerting.Unlock()
	var addresses []string
	for _, o := range outcomes {
		addresses = append(addresses, o.Address)
	}
	all, err := s.notices(ctx, addresses)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, "recording what was told", func(w *writer) error {
		for i := range outcomes {
			left, record, ok := all.Settle(&outcomes[i])
			if applied = append(applied, ok); !ok {
				continue
			}
			if err := s.settleNotice(w, outcomes[i].Notice, left); err != nil {
				return err
			}
			if record != nil {
				if err := s.recordAlert(w, record); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return applied, nil
}
