package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Batch collects the statements of one attempt, in the order in which they are to run. It is made by [BatchStore.Within],
// or by [NewBatch]. It is safe for concurrent use, as long as the handler runs that got it.
type Batch struct {
	mu      sync.Mutex
	queued  pgx.Batch
	sent    bool
	lent    bool             // by Within, which sends it
	on      asker            // on which ClaimTx reads; nil: the pool
	claims  []hookonce.Claim // that are made with it, that of Within among them
	claimAt []int            // which statements make claims
}

// NewBatch returns an empty batch, for [BatchStore.ClaimTx] and [BatchStore.Commit]. One that is not committed does nothing.
func NewBatch() *Batch { return new(Batch) }

// lend returns a batch for a handler that works under c.
func lend(c hookonce.Claim, on asker) *Batch {
	b := &Batch{lent: true, on: on}
	if c.Key != "" {
		b.claims = append(b.claims, c)
	}
	return b
}

// Queue adds a statement, as [pgx.Batch.Queue] does, with its arguments, [pgx.NamedArgs] among them. Nothing is sent yet. The
// arguments are encoded when the handler has returned: do not write into a slice or a map that was given.
//
// It has to be one statement. These fail the attempt: one that begins or ends a transaction, the name of a prepared statement
// (give its text: pgx prepares it once), and a [pgx.QueryRewriter] that is not pgx's own. So does, in
// [pgx.QueryExecModeSimpleProtocol], a text with a semicolon that is not its end, because the server would take it for several
// statements: make what has one an argument.
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
	return b.queued.Queue(query, slices.Clone(arguments)...)
}

// Len returns how many statements the batch has.
func (b *Batch) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued.Len()
}

// end refuses further statements, and changes to those that were queued. No prepared statement has a name that ends as they do
// then, so that pgx takes none of them for a name.
func (b *Batch) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent {
		return
	}
	b.sent = true
	for i, q := range b.queued.QueuedQueries {
		own := *q
		own.SQL += "\n"
		b.queued.QueuedQueries[i] = &own
	}
}

// commit ends a batch that its maker sends.
func (b *Batch) commit() error {
	b.mu.Lock()
	lent, sent := b.lent, b.sent
	b.mu.Unlock()
	switch {
	case lent:
		return errLent
	case sent:
		return pgx.ErrTxClosed
	}
	b.end()
	return nil
}

var (
	errLent = errors.New("the batch holds the claim and is sent by itself when the handler returns: " +
		"return nil to commit, an error to have nothing of it done")
	errRewritten = errors.New("pgstore: Batch: an argument is a pgx.QueryRewriter that is not pgx's own: queue the statement that it makes")
	errSeveral   = errors.New("pgstore: Batch: the statement has a semicolon inside, and in simple_protocol the server may take it " +
		"for several: queue them one by one, and make texts arguments")
)

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

// sendIn sends the batch, which has ended, in a handler's transaction. What may end that, and is not refused, is sent by itself,
// because the server would commit what follows it in one message, and tx lets nothing pass after it. So is everything in
// simple_protocol, where pgx makes one text of a batch, in which a quote that is not closed would swallow the next statement.
func (b *Batch) sendIn(ctx context.Context, tx handlerTx) error {
	simple := simpleProtocol(tx.Tx.Conn())
	for _, q := range b.queued.QueuedQueries {
		if err := refused(q, simple); err != nil {
			return err
		}
	}
	var done int
	all := b.counted(&done)
	size := len(all)
	if simple || !b.harmless() {
		size = 1
	}
	for part := range slices.Chunk(all, max(1, size)) {
		if err := tx.SendBatch(ctx, &pgx.Batch{QueuedQueries: part}).Close(); err != nil {
			return b.taken(err, done)
		}
	}
	return nil
}

// counted returns the statements to be sent once, because pgx leaves in them what it prepared on the connection. Those that were
// answered count in done, and one without an answer fails.
func (b *Batch) counted(done *int) []*pgx.QueuedQuery {
	all := make([]*pgx.QueuedQuery, 0, len(b.queued.QueuedQueries))
	for _, q := range b.queued.QueuedQueries {
		own := *q
		if own.Fn == nil {
			own.Exec(func(pgconn.CommandTag) error { return nil })
		}
		read := own.Fn
		own.Fn = func(results pgx.BatchResults) error {
			err := read(results)
			if err == nil {
				*done++
			}
			return err
		}
		all = append(all, &own)
	}
	return all
}

// taken adds to the error of a batch, of which done statements were carried out, that the key of a claim in it was taken, if that
// is what it says.
func (b *Batch) taken(err error, done int) error {
	lost := pgerror.LockTimeout(err) || pgerror.LostRace(err)
	if says(err, claimsql.NotWon) || lost && slices.Contains(b.claimAt, done) {
		return fmt.Errorf("%w: %w", hookonce.ErrBusy, err)
	}
	return err
}

// simpleProtocol reports whether pgx makes one text of a batch.
func simpleProtocol(conn *pgx.Conn) bool {
	return conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
}

// refused returns why a statement has no place in a batch.
func refused(q *pgx.QueuedQuery, simple bool) error {
	switch {
	case rewritten(q.Arguments):
		return errRewritten
	case endsTransaction(q.SQL):
		return errNotYours
	case simple && several(q.SQL):
		return errSeveral
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

// endsTransaction reports whether the statement begins or ends a transaction, as far as its first words tell. One that does so
// otherwise is noticed once it has.
func endsTransaction(query string) bool {
	rest, _ := skipComments(query)
	words := strings.FieldsFunc(strings.ToLower(rest), func(r rune) bool { return r < 'a' || r > 'z' })
	words = append(words, "", "", "")
	switch words[0] {
	case "begin", "start", "commit", "end", "abort":
		return true
	case "rollback":
		return words[1] != "to" && words[2] != "to" // a savepoint
	case "prepare":
		return words[1] == "transaction"
	}
	return false
}

// several reports whether the query may be several statements: its semicolon may as well stand in a text.
func several(query string) bool { return strings.Contains(strings.TrimRight(query, "; \t\r\n"), ";") }

// queryOrChange reports whether the query certainly is one statement, and one that only reads or changes rows. Procedures
// (CALL, DO) may commit, and so may some that change the schema or the database.
func queryOrChange(query string) bool {
	rest, ok := skipComments(query)
	if !ok || several(rest) {
		return false
	}
	end := strings.IndexAny(rest, " \t\r\n\f(*'\"") // anything else may be part of a prepared statement's name
	if end < 0 {
		return false
	}
	switch strings.ToLower(rest[:end]) {
	case "insert", "update", "delete", "merge", "select", "values", "with":
		return strings.TrimSpace(rest[end:]) != ""
	}
	return false
}

// skipComments returns the query from its first word on. It reports false if a comment does not end or is in another one, where
// it is not the one to say for certain.
func skipComments(query string) (rest string, certain bool) {
	certain = true
	for {
		query = strings.TrimLeft(query, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(query, "--"):
			end := strings.IndexAny(query, "\r\n")
			if end < 0 {
				return "", false
			}
			query = query[end:]
		case strings.HasPrefix(query, "/*"):
			var plain bool
			query, plain = skipComment(query)
			certain = certain && plain
		default:
			return query, certain
		}
	}
}

// skipComment returns what follows the comment at the beginning, and whether that ends and has none inside: comments nest.
func skipComment(query string) (rest string, plain bool) {
	plain = true
	depth := 0
	for i := 0; i+1 < len(query); {
		switch query[i : i+2] {
		case "/*":
			depth++
			plain = plain && depth == 1
			i += 2
		case "*/":
			depth--
			i += 2
			if depth == 0 {
				return query[i:], plain
			}
		default:
			i++
		}
	}
	return "", false
}
