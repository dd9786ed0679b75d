package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"time"

	"github.com/hookonce/hookonce"
)

// message says that an order is packed. The queue gives each message to somebody again until it is acknowledged.
type message struct {
	ID    string `json:"id"`
	Order string `json:"order"`
}

// ship works on the queue of shipments until ctx ends.
func (s *shop) ship(ctx context.Context) {
	for ctx.Err() == nil {
		m, err := s.receive(ctx)
		if err == nil && m != nil {
			err = s.shipped(ctx, *m)
		}
		if err != nil || m == nil {
			if err != nil && ctx.Err() == nil {
				log.Print(err)
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// shipped books a shipment, and acknowledges the message when that is committed: an error of nil says that it is, by
// this delivery of the message or by an earlier one.
func (s *shop) shipped(ctx context.Context, m message) error {
	if m.ID == "" || m.Order == "" {
		return fmt.Errorf("a message of the queue has no id, or no order: %q, %q", m.ID, m.Order)
	}
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "shipments", Key: hookonce.NormalKey(m.ID)}, Type: "order.packed"}
	_, err := s.store.Within(ctx, req, func(tx *sql.Tx, c hookonce.Claim) error {
		ctx := hookonce.ContextWith(ctx, s.store, c, nil)
		_, move, err := hookonce.Transition(ctx, tx, "order/"+m.Order, "paid", "shipped")
		switch {
		case err != nil || move == hookonce.AlreadyThere:
			return err
		case move == hookonce.Impossible:
			return fmt.Errorf("order %s is not paid yet", m.Order) // the queue gives it to us again
		}
		if err := s.exec(ctx, tx, "INSERT INTO shipments (order_id) VALUES (?)", m.Order); err != nil {
			return err
		}
		return enqueue(ctx, tx, "mail", mail{Subject: "shipped", About: m.Order})
	})
	if err != nil {
		return err
	}
	s.worker.Wake()
	return s.post(ctx, "/acknowledge?id="+url.QueryEscape(m.ID))
}

// receive returns a message, or nil if there is none.
func (s *shop) receive(ctx context.Context) (*message, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at.queue+"/next", nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNoContent:
		return nil, nil
	case http.StatusOK:
		m := new(message)
		return m, json.NewDecoder(answer.Body).Decode(m)
	}
	return nil, fmt.Errorf("the queue answered %d", answer.StatusCode)
}

func (s *shop) post(ctx context.Context, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at.queue+path, nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		err = errors.New("the queue does not take the acknowledgement")
	}
	return errors.Join(err, answer.Body.Close())
}
