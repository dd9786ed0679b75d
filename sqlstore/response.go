package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/header"
)

// CompleteWith implements [hookonce.ResponseStore].
func (s *Store) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	var applied bool
	err := s.insist(ctx, func() error {
		return inTx(ctx, s.db, func(tx *sql.Tx) (err error) {
			var stored hookonce.Claim
			applied, err = s.dialect.change(ctx, tx, s.outcome(c, s.now(), s.dialect.complete), fields(&stored)...)
			if err != nil || !applied {
				return err
			}
			return s.keep(ctx, tx, c.Ref, r)
		})
	})
	if err == nil && !applied {
		err = s.settled(ctx, c, []hookonce.State{hookonce.StateDone})
	}
	if err != nil {
		return fmt.Errorf("sqlstore: record the outcome of %s: %w", c.Ref, s.explain(ctx, s.db, err))
	}
	return nil
}

// KeepResponse implements [hookonce.TxResponseStore]. It returns an error that wraps [hookonce.ErrNotFound]
// if there is no such claim, or somebody holds it under a lease.
func (s *Store) KeepResponse(ctx context.Context, tx *sql.Tx, ref hookonce.Ref, r hookonce.Response) error {
	if err := ref.Validate(); err != nil {
		return err
	}
	if err := s.keep(ctx, tx, ref, r); err != nil {
		return fmt.Errorf("sqlstore: keep the response of %s: %w", ref, s.explain(ctx, tx, err))
	}
	return nil
}

// keep stores the response of the claim under ref, which must be done. Errors: [hookonce.ErrResponseTooLarge].
func (s *Store) keep(ctx context.Context, tx *sql.Tx, ref hookonce.Ref, r hookonce.Response) error {
	if err := s.dialect.oversize.fits(ctx, tx, r); err != nil {
		return err
	}
	kept, err := affected(run(ctx, tx, s.dialect.keep,
		ref.Source, ref.Key, r.Status, header.Encode(r.Header), claimsql.Present(r.Body)))
	switch {
	case s.dialect.oversize.told(err):
		err = fmt.Errorf("%w: %w", hookonce.ErrResponseTooLarge, err)
	case err == nil && kept == 0:
		err = hookonce.ErrNotFound
	}
	return err
}

// Response implements [hookonce.ResponseStore].
func (s *Store) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Response{}, err
	}
	var r hookonce.Response
	var lines []byte
	var found bool
	err := s.insist(ctx, func() (err error) {
		found, err = one(ctx, s.db, s.dialect.response, []any{ref.Source, ref.Key}, &r.Status, &lines, &r.Body)
		return err
	})
	if err == nil && !found {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Response{}, fmt.Errorf("sqlstore: the response of %s: %w", ref, s.explain(ctx, s.db, err))
	}
	r.Header = header.Decode(lines)
	return r, nil
}
