// Command janitor receives Stripe's webhooks and forgets them in time: claims of events after 90 days, those of the
// source audit never, and what Once took never, because nobody may get a second welcome bonus. It needs
// STRIPE_WEBHOOK_SECRET, and keeps its database in shop.db.
package main

import (
	"context"
	"database/sql"
	"errors"
	"expvar"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/janitor"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	db, store, err := open(ctx, "shop.db")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET")), welcome))
	if err := serve(ctx, &http.Server{Addr: "127.0.0.1:3000"}, cleaner(store).Run); err != nil { // /debug/vars has what was purged
		log.Fatal(err)
	}
}

// serve answers requests beside the work, until a signal. Either ends with the other: whatever starts the program sees the
// error, and starts it again.
func serve(ctx context.Context, server *http.Server, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- server.ListenAndServe()
		stop()
	}()
	working := work(ctx)
	stopping := server.Shutdown(context.Background())
	serving := <-ended
	if errors.Is(serving, http.ErrServerClosed) {
		serving = nil // by Shutdown
	}
	return errors.Join(serving, working, stopping)
}

// purged counts what went, by kind and source.
var purged = expvar.NewMap("hookonce_purged")

// cleaner returns the janitor of the shop.
func cleaner(store hookonce.Purger, opts ...janitor.Option) *janitor.Janitor {
	count := janitor.WithObserver(func(_ context.Context, o janitor.Observation) {
		purged.Add(string(o.Kind)+" "+o.Source, int64(o.Deleted))
	})
	return janitor.New(store, janitor.Retention{
		Events:  90 * 24 * time.Hour,
		Sources: map[string]time.Duration{"audit": janitor.Forever},
	}, append(opts, count)...)
}

// welcome pays a bonus for a customer's first event, whichever that is and however long ago.
func welcome(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
	first, err := hookonce.Once(ctx, tx, "welcome bonus", "cus_1")
	if err != nil || !first {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO bonuses (event) VALUES (?)", ev.Key)
	return err
}

// open opens the database and makes its tables.
func open(ctx context.Context, path string, opts ...sqlstore.Option) (*sql.DB, *sqlstore.Store, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, nil, err
	}
	store := sqlstore.New(db, sqlstore.SQLite, opts...)
	if _, err := schema.Migrate(ctx, db, schema.SQLite, schema.DefaultName); err != nil {
		return nil, nil, err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS bonuses (event TEXT PRIMARY KEY)")
	return db, store, err
}
