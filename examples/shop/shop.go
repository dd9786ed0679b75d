package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/relay"
)

// addresses are where the others are.
type addresses struct{ bank, mail, queue string }

// shop is the service.
type shop struct {
	*database
	at     addresses
	secret string
	client *http.Client // with a timeout; a handler's call has the same key when its work runs again
	worker *relay.Relay
}

func newShop(d *database, at addresses, secret string, opts ...relay.Option) *shop {
	s := &shop{database: d, at: at, secret: secret, client: &http.Client{Transport: hookonce.Transport(nil), Timeout: 10 * time.Second}}
	s.worker = relay.New(d.store, map[string]relay.Handler{
		"charge": s.charge,
		"refund": s.refund,
		"mail":   relay.POST(nil, at.mail),
	}, opts...)
	return s
}

func (s *shop) handler() http.Handler {
	wake := hookonce.WithObserver(func(context.Context, hookonce.Observation) { s.worker.Wake() }) // after the commit
	mux := http.NewServeMux()
	mux.Handle("POST /orders", hookonce.Idempotent(s.store, "orders", s.placeOrder, hookonce.WithScope(customer), wake))
	mux.Handle("POST /refunds", hookonce.Idempotent(s.store, "refunds", s.askRefund, hookonce.WithScope(customer), wake))
	mux.Handle("POST /webhooks/stripe", hookonce.Webhook(s.store, "stripe", provider.Stripe(s.secret), s.event, wake))
	return mux
}

// customer is who sends a request, as whatever stands in front has authenticated it.
func customer(r *http.Request) (string, error) {
	name, _, ok := r.BasicAuth()
	if !ok {
		return "", errors.New("nobody is logged in")
	}
	return name, nil
}

type order struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	Cents     int64  `json:"cents"`
}

// placeOrder books an order and asks for its payment.
func (s *shop) placeOrder(w http.ResponseWriter, r *http.Request, tx *sql.Tx) error {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Reference == "" || o.Cents <= 0 {
		http.Error(w, "an order has a reference and a price", http.StatusUnprocessableEntity)
		return nil
	}
	ctx := r.Context()
	o.ID = rand.Text()
	if err := s.exec(ctx, tx, "INSERT INTO orders (id, reference, cents) VALUES (?, ?, ?)", o.ID, o.Reference, o.Cents); err != nil {
		return err
	}
	if _, _, err := hookonce.Transition(ctx, tx, "order/"+o.ID, "", "placed"); err != nil {
		return err
	}
	if err := enqueue(ctx, tx, "charge", o); err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(o)
}

type refund struct {
	ID        string `json:"id"`
	Order     string `json:"order"`
	Reference string `json:"reference"`
	Cents     int64  `json:"cents"`
}

// askRefund books a refund of an order that is paid and asks the bank for it.
func (s *shop) askRefund(w http.ResponseWriter, r *http.Request, tx *sql.Tx) error {
	var back refund
	if err := json.NewDecoder(r.Body).Decode(&back); err != nil || back.Order == "" {
		http.Error(w, "a refund names its order", http.StatusUnprocessableEntity)
		return nil
	}
	ctx := r.Context()
	var paid int
	if err := tx.QueryRowContext(ctx, s.text("SELECT count(*) FROM payments WHERE order_id = ?"), back.Order).Scan(&paid); err != nil {
		return err
	}
	if paid == 0 {
		http.Error(w, "the order is not paid", http.StatusTooEarly) // not kept: it may be paid the next time
		return nil
	}
	back.ID = rand.Text()
	err := s.exec(ctx, tx, "INSERT INTO refunds (id, order_id, reference, cents) VALUES (?, ?, ?, ?)", back.ID, back.Order, back.Reference, back.Cents)
	if err != nil {
		return err
	}
	if _, _, err := hookonce.Transition(ctx, tx, "refund/"+back.ID, "", "asked"); err != nil {
		return err
	}
	if err := enqueue(ctx, tx, "refund", back); err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(back)
}

// enqueue asks for something to be done after the commit.
func enqueue(ctx context.Context, tx *sql.Tx, name string, what any) error {
	payload, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: name, Payload: payload})
}
