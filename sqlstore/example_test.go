package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
	_ "modernc.org/sqlite"
)

// shop opens a database with the tables of hookonce and a table of payments.
func shop(ctx context.Context) (db *sql.DB, store *sqlstore.Store, end func()) {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)")
	if err != nil {
		log.Fatal(err)
	}
	store = sqlstore.New(db, sqlstore.SQLite)
	if _, err := schema.Migrate(ctx, db, schema.SQLite, schema.DefaultName); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE payments (invoice TEXT)`); err != nil {
		log.Fatal(err)
	}
	return db, store, func() { db.Close(); os.RemoveAll(dir) }
}

// The first attempt fails after it wrote its payment: nothing is left of it. The retry pays once, and
// the copy that comes after it not at all.
func ExampleStore_Within() {
	ctx := context.Background()
	db, store, end := shop(ctx)
	defer end()

	event := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Type: "invoice.paid"}
	pay := func(failure error) (hookonce.Claim, error) {
		return store.Within(ctx, event, func(tx *sql.Tx, c hookonce.Claim) error {
			if _, err := tx.ExecContext(ctx, `INSERT INTO payments VALUES ('in_42')`); err != nil {
				return err
			}
			return failure
		})
	}
	_, err := pay(errors.New("the bank is closed"))
	fmt.Println(err)
	for range 2 {
		c, err := pay(nil)
		fmt.Println(c.Verdict, err)
	}
	var payments int
	fmt.Println(db.QueryRowContext(ctx, `SELECT count(*) FROM payments`).Scan(&payments), payments)
	// Output:
	// sqlstore: billing/evt_1: attempt 1: the bank is closed
	// accepted <nil>
	// duplicate <nil>
	// <nil> 1
}

// A program with a transaction of its own claims inside it.
func ExampleStore_ClaimTx() {
	ctx := context.Background()
	db, store, end := shop(ctx)
	defer end()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	claim, err := store.ClaimTx(ctx, tx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "queue", Key: "job-7"}})
	if err != nil {
		log.Fatal(err)
	}
	if claim.Verdict == hookonce.Acquired {
		if _, err := tx.ExecContext(ctx, `INSERT INTO payments VALUES ('in_7')`); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(claim.Verdict, tx.Commit())
	// Output: accepted <nil>
}

// An effect in another system cannot share the transaction. The claim is a lease, and its token
// fences off a worker that was too slow.
func ExampleStore_Claim() {
	ctx := context.Background()
	db, store, end := shop(ctx)
	defer end()

	event := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Lease: time.Minute}
	slow, err := store.Claim(ctx, event)
	fmt.Println(slow.Verdict, slow.Token, err)

	later := sqlstore.New(db, sqlstore.SQLite, sqlstore.WithClock(func() time.Time { return time.Now().Add(time.Hour) }))
	successor, err := later.Claim(ctx, event)
	fmt.Println(successor.Verdict, successor.Token, err)

	fmt.Println(errors.Is(store.Complete(ctx, slow), hookonce.ErrStale))
	fmt.Println(later.Complete(ctx, successor))
	// Output:
	// accepted 1 <nil>
	// accepted 2 <nil>
	// true
	// <nil>
}
