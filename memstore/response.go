package memstore

import (
	"bytes"
	"context"
	"fmt"

	"github.com/hookonce/hookonce"
)

// CompleteWith implements [hookonce.ResponseStore].
func (s *Store) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	_, err := s.change(ctx, c, func(tx *Tx, stored *hookonce.Claim) error {
		if stored.State == hookonce.StateProcessing {
			tx.responses[c.Ref] = cloneResponse(r)
		}
		return s.complete(stored)
	})
	return err
}

// KeepResponse implements [hookonce.TxResponseStore]. It returns an error that wraps
// [hookonce.ErrNotFound] if tx did not claim ref.
func (s *Store) KeepResponse(ctx context.Context, tx *Tx, ref hookonce.Ref, r hookonce.Response) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}
	if _, claimed := tx.claims[ref]; !claimed {
		return fmt.Errorf("memstore: keep the response of %s: %w", ref, hookonce.ErrNotFound)
	}
	tx.responses[ref] = cloneResponse(r)
	return nil
}

// Response implements [hookonce.ResponseStore].
func (s *Store) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	if err := ctx.Err(); err != nil {
		return hookonce.Response{}, err
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	r, ok := s.table.responses[ref]
	if !ok {
		return hookonce.Response{}, fmt.Errorf("memstore: the response of %s: %w", ref, hookonce.ErrNotFound)
	}
	return cloneResponse(r), nil
}

func cloneResponse(r hookonce.Response) hookonce.Response {
	return hookonce.Response{Status: r.Status, Header: r.Header.Clone(), Body: bytes.Clone(r.Body)}
}
