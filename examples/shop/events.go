package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
)

// object is what an event of the payment provider is about, as far as the shop cares.
type object struct {
	ID         string `json:"id"`
	UnitAmount int64  `json:"unit_amount"`
	Metadata   struct {
		Order  string `json:"order"`
		Refund string `json:"refund"`
	} `json:"metadata"`
}

// errNameless is for an event that does not say what it is about: all of these would be about one order. It is dead on
// record, because no retry gives it a name.
var errNameless = hookonce.Permanent(errors.New("the event does not name what it is about"))

// event does what an event of the payment provider asks for.
func (s *shop) event(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
	var body struct {
		Data struct {
			Object object `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(ev.Body, &body); err != nil {
		return hookonce.Permanent(err)
	}
	about := body.Data.Object
	switch ev.Type {
	case "charge.succeeded":
		return s.paid(ctx, tx, about)
	case "refund.updated":
		return s.repaid(ctx, tx, about)
	case "payout.paid", "payout.reconciliation_completed": // both mean that the money is there
		if about.ID == "" {
			return errNameless
		}
		first, err := hookonce.Once(ctx, tx, "payout.fee", about.ID)
		if err != nil || !first {
			return err
		}
		return s.exec(ctx, tx, "INSERT INTO fees (payout) VALUES (?)", about.ID)
	case "price.updated":
		return s.priced(ctx, tx, ev, about)
	}
	return nil // of no interest
}

// paid books the payment of an order once, however many events tell of it, and thanks for it.
func (s *shop) paid(ctx context.Context, tx *sql.Tx, charge object) error {
	id := charge.Metadata.Order
	if id == "" {
		return errNameless
	}
	state, move, err := hookonce.Transition(ctx, tx, "order/"+id, "placed", "paid")
	switch {
	case err != nil:
		return err
	case move == hookonce.AlreadyThere, state == "shipped":
		return nil
	case move == hookonce.Impossible:
		return fmt.Errorf("order %s is not here yet", id) // the provider sends again
	}
	if err := s.exec(ctx, tx, "INSERT INTO payments (order_id, charge) VALUES (?, ?)", id, charge.ID); err != nil {
		return err
	}
	return enqueue(ctx, tx, "mail", mail{Subject: "paid", About: id})
}

// repaid books that the bank has paid back.
func (s *shop) repaid(ctx context.Context, tx *sql.Tx, back object) error {
	id := back.Metadata.Refund
	if id == "" {
		return errNameless
	}
	_, move, err := hookonce.Transition(ctx, tx, "refund/"+id, "asked", "repaid")
	switch {
	case err != nil || move == hookonce.AlreadyThere:
		return err
	case move == hookonce.Impossible:
		return fmt.Errorf("refund %s is not here yet", id)
	}
	if err := s.exec(ctx, tx, "INSERT INTO repayments (refund_id) VALUES (?)", id); err != nil {
		return err
	}
	return enqueue(ctx, tx, "mail", mail{Subject: "repaid", About: id})
}

// priced writes down what a product costs, unless something newer is known.
func (s *shop) priced(ctx context.Context, tx *sql.Tx, ev *hookonce.Event, price object) error {
	if price.ID == "" {
		return errNameless
	}
	newer, err := hookonce.Newer(ctx, tx, ev)
	if err != nil || !newer {
		return err
	}
	if err := s.exec(ctx, tx, "DELETE FROM prices WHERE product = ?", price.ID); err != nil {
		return err
	}
	return s.exec(ctx, tx, "INSERT INTO prices (product, cents) VALUES (?, ?)", price.ID, price.UnitAmount)
}

// mail is what the mail service is told.
type mail struct {
	Subject string `json:"subject"`
	About   string `json:"about"`
}
