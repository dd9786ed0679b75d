package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/hookonce/hookonce"
)

// charge asks the bank for the money of an order. The relay calls it after the order was committed, and again until it
// returns nil: under the same Idempotency-Key, which the client's transport derives from the effect and the step.
func (s *shop) charge(ctx context.Context, e hookonce.QueuedEffect) error {
	return s.call(hookonce.WithStep(ctx, "charge"), "/charges", e.Payload)
}

// refund asks it to pay back.
func (s *shop) refund(ctx context.Context, e hookonce.QueuedEffect) error {
	return s.call(hookonce.WithStep(ctx, "refund"), "/refunds", e.Payload)
}

func (s *shop) call(ctx context.Context, path string, body json.RawMessage) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at.bank+path, bytes.NewReader(body))
	if err != nil {
		return hookonce.Permanent(err)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the bank answered %d", answer.StatusCode)
	}
	return nil
}
