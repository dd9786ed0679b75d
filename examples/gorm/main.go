// Command gorm receives Stripe's webhooks, with GORM. It needs DATABASE_URL and STRIPE_WEBHOOK_SECRET.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

func main() {
	shop, store, err := open(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	stripe := provider.Stripe(os.Getenv("STRIPE_WEBHOOK_SECRET"))
	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", stripe, shop.recordPayment))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

// Payment is a model like any other.
type Payment struct {
	ID    uint
	Event string
	Type  string
}

// shop holds what handlers need.
type shop struct{ gorm *gorm.DB }

// open connects, and creates the tables. GORM and the store share the connections.
func open(ctx context.Context, dsn string) (*shop, *sqlstore.Store, error) {
	g, err := gorm.Open(postgres.Open(dsn), &gorm.Config{})
	if err != nil {
		return nil, nil, err
	}
	db, err := g.DB()
	if err != nil {
		return nil, nil, err
	}
	store := sqlstore.New(db, sqlstore.Postgres)
	if _, err := schema.Migrate(ctx, db, schema.Postgres, schema.DefaultName); err != nil {
		return nil, nil, err
	}
	return &shop{g}, store, g.WithContext(ctx).AutoMigrate(&Payment{})
}

// within returns GORM in a transaction that somebody else ends. Nested transactions are savepoints: what one did is undone only
// if ctx has not ended by then, and GORM tells nobody. So give it the handler's own context.
func (s *shop) within(ctx context.Context, tx *sql.Tx) *gorm.DB {
	g := s.gorm.Session(&gorm.Session{NewDB: true, Context: ctx})
	g.Statement.ConnPool = tx
	return g
}

// recordPayment commits with the claim of the event, or not at all.
func (s *shop) recordPayment(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
	return s.within(ctx, tx).Create(&Payment{Event: ev.Key, Type: ev.Type}).Error
}
