package pgstore

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// Batch collects the statements of one attempt, in the order in which they are to run. It is made by [BatchStore.Within],
// or by [NewBatch]. It is safe for concurrent use, as long as the handler runs that got it.
type Batch struct {
	mu     sync.Mutex
	queued pgx.Batch
	sent   bool
	claims []hookonce.Claim // that statements in it make, but for that of Within
}

// NewBatch returns an empty batch, for [BatchStore.ClaimTx] and [BatchStore.Commit]. One that is not committed does nothing.
func NewBatch() *Batch { return new(Batch) }

// Queue adds a statement, as [pgx.Batch.Queue] does: one statement, or the name of a prepared one, with its arguments,
// [pgx.NamedArgs] among them. Nothing is sent yet. What begins or ends a transaction has no place in it.
//
// Functions given to Exec, Query and QueryRow of what it returns read the results before the commit; their error rolls all of
// the batch back, like that of a statement. They cost two round trips: see [BatchStore.Within].
//
// Queue panics once the handler has returned, because what it adds would never run.
func (b *Batch) Queue(query string, arguments ...any) *pgx.QueuedQuery {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent {
		panic("pgstore: Batch.Queue: the handler has returned, and its batch was sent: queue statements before that")
	}
	return b.queued.Queue(query, arguments...)
}

// Len returns how many statements the batch has.
func (b *Batch) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued.Len()
}

// end refuses further statements, and reports whether it is the first to do so.
func (b *Batch) end() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := !b.sent
	b.sent = true
	return first
}

// plain reports whether the batch, which has ended, can be sent without BEGIN and COMMIT: nobody reads its results, and no
// statement can end a transaction. The server makes all statements up to Sync one transaction.
// https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING
func (b *Batch) plain() bool {
	return b.harmless() && !slices.ContainsFunc(b.queued.QueuedQueries, func(q *pgx.QueuedQuery) bool { return q.Fn != nil })
}

// harmless reports whether no statement of the batch can end a transaction.
func (b *Batch) harmless() bool {
	return !slices.ContainsFunc(b.queued.QueuedQueries, func(q *pgx.QueuedQuery) bool { return !queryOrChange(q.SQL) || rewritten(q.Arguments) })
}

// sendIn sends the batch, which has ended, in a handler's transaction. What may end that is sent by itself, because the server
// would commit what follows it in one message, and tx lets nothing pass after it.
func (b *Batch) sendIn(ctx context.Context, tx pgx.Tx) error {
	if b.harmless() {
		return taken(tx.SendBatch(ctx, &b.queued).Close())
	}
	for _, q := range b.queued.QueuedQueries {
		if err := tx.SendBatch(ctx, &pgx.Batch{QueuedQueries: []*pgx.QueuedQuery{q}}).Close(); err != nil {
			return taken(err)
		}
	}
	return nil
}

// rewritten reports whether the statement may be another one when it is sent. Those of pgx itself give names to parameters.
func rewritten(arguments []any) bool {
	return slices.ContainsFunc(arguments, func(a any) bool {
		switch a.(type) {
		case pgx.NamedArgs, pgx.StrictNamedArgs:
			return false
		}
		_, is := a.(pgx.QueryRewriter)
		return is
	})
}

// queryOrChange reports whether the query certainly is one statement, and one that only reads or changes rows. Procedures
// (CALL, DO) may commit, and so may some that change the schema or the database.
func queryOrChange(query string) bool {
	rest, ok := skipComments(query)
	if !ok || strings.Contains(strings.TrimRight(rest, "; \t\r\n"), ";") { // it may as well stand in a text
		return false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return !isLetter(r) })
	if end < 0 {
		return false
	}
	if next := rest[end]; next == '_' || next == '.' || next >= '0' && next <= '9' || next >= 0x80 {
		return false // a prepared statement's name
	}
	switch strings.ToLower(rest[:end]) {
	case "insert", "update", "delete", "merge", "select", "values", "with":
		return true
	}
	return false
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// skipComments returns the query from its first word on. It reports false if it cannot tell where that is.
func skipComments(query string) (rest string, ok bool) {
	for {
		query = strings.TrimLeft(query, " \t\r\n\f\v")
		line, isLine := strings.CutPrefix(query, "--")
		block, isBlock := strings.CutPrefix(query, "/*")
		switch {
		case isLine:
			_, query, ok = strings.Cut(strings.ReplaceAll(line, "\r", "\n"), "\n")
		case isBlock:
			var inside string
			inside, query, ok = strings.Cut(block, "*/")
			ok = ok && !strings.Contains(inside, "/*") // comments nest
		default:
			return query, true
		}
		if !ok {
			return "", false
		}
	}
}
