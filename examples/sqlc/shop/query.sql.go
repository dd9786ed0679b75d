package shop

import (
	"context"
)

const countPayments = `-- name: CountPayments :one
SELECT count(*) FROM payments WHERE event = $1
`

// CountPayments returns how many payments an event has made.
func (q *Queries) CountPayments(ctx context.Context, event string) (int64, error) {
	row := q.db.QueryRow(ctx, countPayments, event)
	var count int64
	err := row.Scan(&count)
	return count, err
}

const recordPayment = `-- name: RecordPayment :exec
INSERT INTO payments (event, type) VALUES ($1, $2)
`

// RecordPaymentParams are the columns of a payment.
type RecordPaymentParams struct {
	Event string
	Type  string
}

// RecordPayment inserts a payment.
func (q *Queries) RecordPayment(ctx context.Context, arg RecordPaymentParams) error {
	_, err := q.db.Exec(ctx, recordPayment, arg.Event, arg.Type)
	return err
}
