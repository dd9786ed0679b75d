package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// keepReconciliations is how many are kept: of three questions a night, those of a year.
const keepReconciliations = 1000

// Record stores what a reconciliation found, and deletes the oldest ones.
func (t *Tables) Record(ctx context.Context, r hookonce.Reconciliation) error {
	report, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text, args := t.say(`INSERT INTO {}reconciliations (at, report) VALUES (@1, @2)`, []any{t.time(r.At), string(report)})
	if _, err := t.db.ExecContext(ctx, text, args...); err != nil {
		return err
	}
	var last int64
	err = t.each(ctx, `SELECT coalesce(max(id), 0) FROM {}reconciliations`, nil, func(scan func(...any) error) error { return scan(&last) })
	if err != nil {
		return err
	}
	text, args = t.say(`DELETE FROM {}reconciliations WHERE id <= @1`, []any{last - keepReconciliations})
	_, err = t.db.ExecContext(ctx, text, args...)
	return err
}

// Reconciliations implements [hookonce.Inspector].
func (t *Tables) Reconciliations(ctx context.Context, limit int) (found []hookonce.Reconciliation, err error) {
	err = t.each(ctx, `SELECT at, report FROM {}reconciliations ORDER BY id DESC LIMIT @1`, []any{max(limit, 0)}, func(scan func(...any) error) error {
		var r hookonce.Reconciliation
		var report []byte
		var at time.Time
		if err := scan(stamp{&at}, &report); err != nil {
			return err
		}
		if err := json.Unmarshal(report, &r); err != nil {
			return fmt.Errorf("a record of hookonce reconcile effects cannot be read: %w", err)
		}
		r.At = at
		found = append(found, r)
		return nil
	})
	return found, err
}

// counts is how long what a reconciliation found says how things are: it is made every night, or
// after an incident, and a nightly job that stopped is not to page for ever.
const counts = 7 * 24 * time.Hour

// Until returns when what a reconciliation found does not say any more how things are.
func Until(r hookonce.Reconciliation) time.Time { return r.At.Add(counts) }

// few is how many reconciliations are looked at where they go back for so long that all that count
// are among them: what one found is not hidden by another one that is put every five minutes.
const few = 50

// Latest returns the latest reconciliation of each question, the latest first. One that does not
// count any more may be left out.
func Latest(ctx context.Context, list func(ctx context.Context, limit int) ([]hookonce.Reconciliation, error)) (latest []hookonce.Reconciliation, err error) {
	all, err := list(ctx, few)
	if len(all) == few && all[0].At.Sub(all[few-1].At) < counts {
		all, err = list(ctx, keepReconciliations)
	}
	for _, r := range all {
		if !slices.ContainsFunc(latest, func(l hookonce.Reconciliation) bool { return l.Question == r.Question }) {
			latest = append(latest, r)
		}
	}
	return latest, err
}
