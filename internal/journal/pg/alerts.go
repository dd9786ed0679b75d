package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

// errBusy says that somebody else changes alerts.
var errBusy = errors.New("somebody else changes alerts")

// ChangeAlerts implements [journal.Store]. The lock ends with the transaction, which works behind a pooler as well.
func (s *Store) ChangeAlerts(ctx context.Context, try bool, change func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	var refused error // by change
	err := s.waits.Heed(func() error {
		return s.alerting(ctx, "changing alerts", try, func(tx pgx.Tx) error {
			book, err := s.alertBook(ctx, tx)
			if err != nil {
				return err
			}
			changes, err := change(book)
			if refused = err; err != nil || changes.Empty() {
				return err
			}
			return s.changeAlerts(ctx, tx, changes)
		})
	})
	switch {
	case refused != nil:
		return false, refused
	case try && errors.Is(err, errBusy):
		return false, nil
	}
	return err == nil, err
}

// How long is waited for another process that changes alerts, which takes some milliseconds, before it is asked again: each time
// twice as long.
const (
	alertPause     = 10 * time.Millisecond
	alertPauseMost = 160 * time.Millisecond
)

// alerting runs f in a durable transaction in which nobody else changes alerts or takes notices. Who waits for that, in this process
// or for another one, has no connection meanwhile: those are for events.
func (s *Store) alerting(ctx context.Context, what string, try bool, f func(pgx.Tx) error) error {
	if err := s.takeTurn(ctx, try); err != nil {
		return failed(what, err)
	}
	defer func() { <-s.turn }()
	for wait := alertPause; ; wait = min(2*wait, alertPauseMost) {
		err := s.retry(ctx, what, func() error { return s.durably(ctx, func(tx pgx.Tx) error { return s.locked(ctx, tx, f) }) })
		if try || !errors.Is(err, errBusy) {
			return err
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// takeTurn waits until nobody else in this process changes alerts.
func (s *Store) takeTurn(ctx context.Context, try bool) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	if try {
		return errBusy
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errBusy, ctx.Err())
	}
}

// locked runs f if nobody else changes alerts.
func (s *Store) locked(ctx context.Context, tx pgx.Tx, f func(pgx.Tx) error) error {
	mine := false
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, s.in("{{.}}alerts")).Scan(&mine); err != nil {
		return err
	}
	if !mine {
		return errBusy
	}
	return f(tx)
}

const putAlertSQL = `INSERT INTO {{.}}alerts (rule, subject, state, severity, transition, since, fired_at, seen_at, told_at, told_as,
	cause, body, ack_by, ack_reason, ack_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
	ON CONFLICT (rule, subject) DO UPDATE SET state = excluded.state, severity = excluded.severity, transition = excluded.transition,
		since = excluded.since, fired_at = excluded.fired_at, seen_at = excluded.seen_at, told_at = excluded.told_at,
		told_as = excluded.told_as, cause = excluded.cause, body = excluded.body, ack_by = excluded.ack_by,
		ack_reason = excluded.ack_reason, ack_at = excluded.ack_at`

const recordAlertSQL = `INSERT INTO {{.}}alert_records (rule, subject, at, event, transition, severity, text, done_by)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

const putNoticeSQL = `INSERT INTO {{.}}alert_notices (address, rule, subject, transition, due_at, leased, since, tries, token, body)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	ON CONFLICT (address, rule, subject, transition) DO UPDATE SET due_at = excluded.due_at, leased = excluded.leased,
		since = excluded.since, tries = excluded.tries, body = excluded.body`

// changeAlerts writes what changed.
func (s *Store) changeAlerts(ctx context.Context, tx pgx.Tx, c *journal.AlertChanges) error {
	exec := func(text string, args ...any) error {
		_, err := tx.Exec(ctx, s.in(text), args...)
		return err
	}
	for _, a := range c.Put {
		if err := exec(putAlertSQL, a.Rule, a.Subject, string(a.State), a.Severity, a.Transition, a.Since, moment(a.Fired), moment(a.Seen),
			moment(a.Told), a.ToldAs, a.Cause, content(a.Body), a.AckBy, a.AckReason, moment(a.AckAt)); err != nil {
			return err
		}
	}
	if len(c.Unsilence) > 0 {
		if err := exec(`DELETE FROM {{.}}alert_silences WHERE id = ANY ($1)`, c.Unsilence); err != nil {
			return err
		}
	}
	for i := range c.Silence {
		n := &c.Silence[i]
		if err := tx.QueryRow(ctx, s.in(`INSERT INTO {{.}}alert_silences (rule, subject, at, until, done_by, reason)
			VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`), n.Rule, n.Subject, n.At, n.Until, n.By, n.Reason).Scan(&n.ID); err != nil {
			return err
		}
	}
	for _, r := range c.Records {
		if err := s.recordAlert(ctx, tx, &r); err != nil {
			return err
		}
	}
	for _, n := range c.Notices {
		if err := exec(`DELETE FROM {{.}}alert_notices WHERE address = $1 AND rule = $2 AND subject = $3 AND transition < $4 AND NOT leased`,
			n.Address, n.Rule, n.Subject, n.Transition); err != nil {
			return err
		}
		if err := exec(putNoticeSQL,
			n.Address, n.Rule, n.Subject, n.Transition, n.Due, n.Leased, n.Since, n.Tries, n.Token, content(n.Body)); err != nil {
			return err
		}
	}
	for _, a := range c.Audits {
		if _, err := s.audit(ctx, tx, a); err != nil {
			return err
		}
	}
	if !c.Abandon.IsZero() {
		if err := exec(`DELETE FROM {{.}}alert_notices WHERE since < $1`, c.Abandon); err != nil {
			return err
		}
	}
	if c.Forget.IsZero() {
		return nil
	}
	for _, text := range forgetAlerts {
		if err := exec(text, c.Forget); err != nil {
			return err
		}
	}
	return nil
}

// forgetAlerts are the statements that delete what is older than $1.
var forgetAlerts = []string{
	`DELETE FROM {{.}}alert_records WHERE at < $1`,
	`DELETE FROM {{.}}alert_silences WHERE until < $1`,
	`DELETE FROM {{.}}alerts a WHERE state = 'resolved' AND since < $1
		AND NOT EXISTS (SELECT FROM {{.}}alert_notices n WHERE n.rule = a.rule AND n.subject = a.subject)`,
}

func (s *Store) recordAlert(ctx context.Context, tx pgx.Tx, r *journal.AlertRecord) error {
	_, err := tx.Exec(ctx, s.in(recordAlertSQL), r.Rule, r.Subject, r.At, string(r.Event), r.Transition, r.Severity, r.Text, r.By)
	return err
}

// moment is NULL for the zero time.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// content is never NULL.
func content(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// orZero is the zero time for NULL.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// alertBook reads what is remembered.
func (s *Store) alertBook(ctx context.Context, db querier) (*journal.AlertBook, error) {
	b := &journal.AlertBook{Waiting: map[string]int{}}
	var err error
	b.Alerts, err = rows(ctx, db, s.in(`SELECT rule, subject, state, severity, transition, since, fired_at, seen_at, told_at, told_as,
		cause, body, ack_by, ack_reason, ack_at FROM {{.}}alerts ORDER BY rule, subject`), nil, func(row pgx.CollectableRow) (a journal.Alert, err error) {
		var fired, seen, told, ack *time.Time
		err = row.Scan(&a.Rule, &a.Subject, &a.State, &a.Severity, &a.Transition, &a.Since, &fired, &seen, &told, &a.ToldAs,
			&a.Cause, &a.Body, &a.AckBy, &a.AckReason, &ack)
		a.Fired, a.Seen, a.Told, a.AckAt = orZero(fired), orZero(seen), orZero(told), orZero(ack)
		return a, err
	})
	if err != nil {
		return nil, err
	}
	b.Silences, err = rows(ctx, db, s.in(`SELECT id, rule, subject, at, until, done_by, reason FROM {{.}}alert_silences ORDER BY id`), nil,
		func(row pgx.CollectableRow) (n journal.Silence, err error) {
			err = row.Scan(&n.ID, &n.Rule, &n.Subject, &n.At, &n.Until, &n.By, &n.Reason)
			return n, err
		})
	if err != nil {
		return nil, err
	}
	var address string
	var n int
	return b, each(ctx, db, s.in(`SELECT address, count(*) FROM {{.}}alert_notices GROUP BY address`), nil, []any{&address, &n}, func() error {
		b.Waiting[address] = n
		return nil
	})
}

// Alerts implements [journal.Store].
func (s *Store) Alerts(ctx context.Context) (book *journal.AlertBook, err error) {
	err = s.read(ctx, "reading alerts", func(tx pgx.Tx) error {
		book, err = s.alertBook(ctx, tx)
		return err
	})
	return book, err
}

// AlertHistory implements [journal.Store].
func (s *Store) AlertHistory(ctx context.Context, f journal.AlertFilter, before int64, limit int) ([]journal.AlertRecord, error) {
	const text = `SELECT id, rule, subject, at, event, transition, severity, text, done_by FROM {{.}}alert_records
		WHERE ($1 = 0 OR id < $1) AND ($2 = '' OR rule = $2) AND ($3 = '' OR subject = $3) AND ($5::text[] = '{}' OR event = ANY ($5))
		ORDER BY id DESC LIMIT $4`
	events := make([]string, len(f.Events))
	for i, e := range f.Events {
		events[i] = string(e)
	}
	all, err := rows(ctx, s.pool, s.in(text), []any{before, f.Rule, f.Subject, limit, events}, func(row pgx.CollectableRow) (r journal.AlertRecord, err error) {
		err = row.Scan(&r.ID, &r.Rule, &r.Subject, &r.At, &r.Event, &r.Transition, &r.Severity, &r.Text, &r.By)
		return r, err
	})
	return all, failed("reading what happened to alerts", err)
}

// notices reads those of some addresses.
func (s *Store) notices(ctx context.Context, db querier, addresses []string) (journal.Notices, error) {
	const text = `SELECT address, rule, subject, transition, due_at, leased, since, tries, token, body FROM {{.}}alert_notices
		WHERE address = ANY ($1)`
	return rows(ctx, db, s.in(text), []any{addresses}, func(row pgx.CollectableRow) (n journal.Notice, err error) {
		err = row.Scan(&n.Address, &n.Rule, &n.Subject, &n.Transition, &n.Due, &n.Leased, &n.Since, &n.Tries, &n.Token, &n.Body)
		return n, err
	})
}

// TakeNotices implements [journal.Store]. It takes the lock only if there is something.
func (s *Store) TakeNotices(ctx context.Context, now, lease time.Time, addresses []string, limit int) (taken []journal.Notice, err error) {
	due := false
	const look = `SELECT EXISTS (SELECT FROM {{.}}alert_notices WHERE address = ANY ($1) AND due_at <= $2)`
	if err := s.pool.QueryRow(ctx, s.in(look), addresses, now).Scan(&due); err != nil || !due {
		return nil, failed("looking for what has to be told", err)
	}
	err = s.alerting(ctx, "taking what has to be told", false, func(tx pgx.Tx) error {
		all, err := s.notices(ctx, tx, addresses)
		if err != nil {
			return err
		}
		var gone journal.Notices
		taken, gone = all.Take(now, lease, limit)
		for _, n := range gone {
			if err := s.settleNotice(ctx, tx, n, nil); err != nil {
				return err
			}
		}
		for _, n := range taken {
			if err := s.settleNotice(ctx, tx, n, &n); err != nil {
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
func (s *Store) settleNotice(ctx context.Context, tx pgx.Tx, old journal.Notice, left *journal.Notice) error {
	const which = ` WHERE address = $1 AND rule = $2 AND subject = $3 AND transition = $4`
	args := []any{old.Address, old.Rule, old.Subject, old.Transition}
	text := `DELETE FROM {{.}}alert_notices` + which
	if left != nil {
		text = `UPDATE {{.}}alert_notices SET due_at = $5, leased = $6, tries = $7, token = $8` + which
		args = append(args, left.Due, left.Leased, left.Tries, left.Token)
	}
	_, err := tx.Exec(ctx, s.in(text), args...)
	return err
}

// FinishNotices implements [journal.Store].
func (s *Store) FinishNotices(ctx context.Context, outcomes []journal.NoticeOutcome) (applied []bool, err error) {
	var addresses []string
	for _, o := range outcomes {
		addresses = append(addresses, o.Address)
	}
	err = s.alerting(ctx, "recording what was told", false, func(tx pgx.Tx) error {
		applied = applied[:0]
		all, err := s.notices(ctx, tx, addresses)
		if err != nil {
			return err
		}
		for i := range outcomes {
			left, record, ok := all.Settle(&outcomes[i])
			if applied = append(applied, ok); !ok {
				continue
			}
			if err := s.settleNotice(ctx, tx, outcomes[i].Notice, left); err != nil {
				return err
			}
			if record != nil {
				if err := s.recordAlert(ctx, tx, record); err != nil {
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
