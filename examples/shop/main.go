// Command shop is a whole service: orders and refunds that clients ask for with an Idempotency-Key, a payment
// provider that is called and that sends webhooks, mails, and a queue of shipments. Everything happens once,
// however often it is asked for, and nothing that was promised is lost when the process is killed.
//
//	shop --db postgres://localhost/shop --bank https://api.bank.example --mail https://mail.example/send --queue https://queue.example
//
// It runs on PostgreSQL, SQLite (sqlite:shop.db) and MySQL or MariaDB (mysql:app@tcp(localhost:3306)/shop), and needs
// the secret of the provider's webhooks in STRIPE_WEBHOOK_SECRET. Any number of processes may run beside each other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hookonce/hookonce/janitor"
	"github.com/hookonce/hookonce/relay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var at addresses
	listen := flag.String("listen", "127.0.0.1:3000", "where to serve")
	dsn := flag.String("db", "sqlite:shop.db", "postgres://..., sqlite:FILE or mysql:DSN")
	flag.StringVar(&at.bank, "bank", "", "address of the payment provider's API")
	flag.StringVar(&at.mail, "mail", "", "where mails are posted")
	flag.StringVar(&at.queue, "queue", "", "address of the queue of shipments")
	lease := flag.Duration("lease", relay.DefaultLease, "how long an effect waits whose process died")
	retry := flag.Duration("retry", 5*time.Second, "how long one waits that failed, at first")
	flag.Parse()
	err := run(ctx, *listen, *dsn, at, relay.WithLease(*lease), relay.WithSchedule(relay.Exponential(*retry, 24*time.Hour, 3, 13)))
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, or a part of it does by itself, and then until what is under way is
// done.
func run(ctx context.Context, listen, dsn string, at addresses, opts ...relay.Option) error {
	db, err := open(ctx, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	return newShop(db, at, os.Getenv("STRIPE_WEBHOOK_SECRET"), opts...).run(ctx, listener)
}

// run is the service on a listener. A worker that ends by itself ends all the others: whatever
// starts the program sees that, and starts it again. A shop that went on without its relay would
// look well.
func (s *shop) run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.handler()}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	working, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	var serving, relaying, cleaning error
	workers.Go(func() {
		defer stop()
		relaying = s.worker.Run(working)
	})
	workers.Go(func() {
		defer stop()
		cleaning = janitor.New(s.store, janitor.Retention{}).Run(working) // after 90 days, save what Once took
	})
	workers.Go(func() { s.ship(working) })
	select {
	case <-working.Done():
	case serving = <-failed:
	}
	stop()
	workers.Wait()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(serving, relaying, cleaning, server.Shutdown(ending))
}
