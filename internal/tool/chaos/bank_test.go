package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/hookonce/hookonce"
)

// accounts are few, so that transfers meet and deadlock.
const accounts = 8

// transfer is an event: money that moves from one account to another.
type transfer struct {
	key              string
	from, to, amount int
}

// transfers returns the events of a round. Their keys are of those that programs stumble over, and the round's
// own, because rounds share databases.
func transfers(round string) []transfer {
	all := make([]transfer, *events)
	for i := range all {
		from := i % accounts
		all[i] = transfer{
			key:  fmt.Sprintf(`%s'%d"\%%?$1é%c`, round, i, " ;"[i%2]),
			from: from, to: (from + 1 + i%(accounts-1)) % accounts, amount: 1 + i%13,
		}
	}
	return all
}

func ref(key string) hookonce.Ref { return hookonce.Ref{Source: "bank", Key: key} }

// statement runs a statement in a handler's transaction. The first parameter is ?, whatever the database has.
type statement func(ctx context.Context, text string, args ...any) error

// bank is what the handlers work on, and how well they behave.
type bank struct {
	*dice
	byKey map[string]transfer
	// nudge tells the adversary that now would be a bad moment.
	nudge func()
	// aside is something else that the handler does, between the parts of the effect; nil: nothing.
	aside func(ctx context.Context, do statement) error
	// hides says that errors of the effect itself are hidden, too.
	hides bool
}

func newBank(d *dice, all []transfer) *bank {
	b := &bank{dice: d, byKey: map[string]transfer{}, nudge: func() {}}
	for _, e := range all {
		b.byKey[e.key] = e
	}
	return b
}

// createBank makes the tables. None has a unique index but the one of accounts, which nobody inserts into.
func createBank(t testing.TB, db *sql.DB) {
	t.Helper()
	for table, columns := range map[string]string{
		"accounts":  "id INTEGER NOT NULL PRIMARY KEY, balance BIGINT NOT NULL",
		"transfers": "reference TEXT NOT NULL",
		"notes":     "n BIGINT NOT NULL",
	} {
		exec(t, db, "DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+" ("+columns+")")
	}
	for i := range accounts {
		exec(t, db, fmt.Sprintf("INSERT INTO accounts VALUES (%d, 0)", i))
	}
}

func exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// handle is the handler's work: the effect, and then whatever mood it is in.
func (b *bank) handle(ctx context.Context, do statement, key string) error {
	e, known := b.byKey[key]
	if !known {
		return hookonce.Permanent(fmt.Errorf("nobody sent %q", key))
	}
	const move = "UPDATE accounts SET balance = balance + %d WHERE id = %d"
	for _, part := range []struct {
		text string
		args []any
	}{
		{fmt.Sprintf(move, -e.amount, e.from), nil},
		{"INSERT INTO transfers (reference) VALUES (?)", []any{e.key}},
		{fmt.Sprintf(move, e.amount, e.to), nil},
	} {
		if b.oneIn(8) {
			b.nudge()
		}
		if b.aside != nil && b.oneIn(6) {
			if err := b.aside(ctx, do); err != nil {
				return err
			}
		}
		if err := do(ctx, part.text, part.args...); err != nil && !b.hides {
			return err
		}
	}
	return b.mood()
}

var errDeclined = errors.New("the handler declined")

// mood is how a handler ends whose statements went well.
func (b *bank) mood() error {
	if b.oneIn(2) {
		b.nudge() // in time for the commit
	}
	switch b.n(40) {
	case 0, 1:
		return errDeclined
	case 2:
		return hookonce.Permanent(errDeclined)
	case 3:
		panic("the handler panicked")
	}
	return nil
}

// audit counts, on a connection of its own, what came of the events: each of those that happened has its effect
// once, and nothing else has any.
func audit(t testing.TB, db *sql.DB, happened []transfer) {
	t.Helper()
	effects := map[string]int{}
	each(t, db, "SELECT reference FROM transfers", func(scan func(...any) error) error {
		var key string
		err := scan(&key)
		effects[key]++
		return err
	})
	want := map[int]int{}
	for i := range accounts {
		want[i] = 0
	}
	for _, e := range happened {
		if n := effects[e.key]; n != 1 {
			t.Errorf("%s is done and has its effect %d times", e.key, n)
		}
		delete(effects, e.key)
		want[e.from] -= e.amount
		want[e.to] += e.amount
	}
	for key := range effects {
		t.Errorf("%s has an effect, and was given up or never sent", key)
	}
	balances := map[int]int{}
	each(t, db, "SELECT id, balance FROM accounts", func(scan func(...any) error) error {
		var id, balance int
		err := scan(&id, &balance)
		balances[id] = balance
		return err
	})
	if !maps.Equal(balances, want) {
		t.Errorf("the balances are %v, want %v: a part of an effect is missing or there twice", balances, want)
	}
}

// each calls f for every row of a query.
func each(t testing.TB, db *sql.DB, query string, f func(scan func(...any) error) error) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
