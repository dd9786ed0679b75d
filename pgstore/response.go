package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/jackc/pgx/v5"
)

// CompleteWith implements [hookonce.ResponseStore] in one statement, so in one round trip.
func (s *Store) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	if err := fits(r); err != nil {
		return wrap("complete", c.Ref, err)
	}
	_, err := s.change(ctx, c, change{
		state: hookonce.StateDone, repeats: []hookonce.State{hookonce.StateDone}, response: &r,
	})
	return wrap("complete", c.Ref, oversized(err))
}

// KeepResponse implements [hookonce.TxResponseStore]. It returns an error that wraps
// [hookonce.ErrNotFound] if there is no claim in sight of tx, or if it is not done.
func (s *Store) KeepResponse(ctx context.Context, tx pgx.Tx, ref hookonce.Ref, r hookonce.Response) error {
	if err := ref.Validate(); err != nil {
		return err
	}
	if err := fits(r); err != nil {
		return wrap("keep the response of", ref, err)
	}
	tag, err := tx.Exec(ctx, s.sql.Keep, append([]any{ref.Source, ref.Key}, kept(r)...)...)
	if err == nil && tag.RowsAffected() == 0 {
		err = hookonce.ErrNotFound
	}
	return wrap("keep the response of", ref, oversized(err))
}

// Response implements [hookonce.ResponseStore].
func (s *Store) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	if err := ref.Validate(); err != nil {
		return hookonce.Response{}, err
	}
	var r hookonce.Response
	var lines []byte
	err := s.pool.QueryRow(ctx, s.sql.Response, ref.Source, ref.Key).Scan(&r.Status, &lines, &r.Body)
	if errors.Is(err, pgx.ErrNoRows) {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Response{}, wrap("read the response of", ref, err)
	}
	r.Header = header.Decode(lines)
	return r, nil
}

// fits returns an error if r is larger than the server takes.
func fits(r hookonce.Response) error {
	if len(r.Body) > claimsql.MaxField {
		return fmt.Errorf("%w: Postgres takes at most %d bytes, and this has %d", hookonce.ErrResponseTooLarge, claimsql.MaxField, len(r.Body))
	}
	return nil
}

// oversized adds to the error of a statement with a response that this was too large, if that is what it says.
func oversized(err error) error {
	if pgerror.TooLarge(err) {
		return fmt.Errorf("%w: %w", hookonce.ErrResponseTooLarge, err)
	}
	return err
}

// kept are the values of the columns of a response.
func kept(r hookonce.Response) []any {
	return []any{r.Status, header.Encode(r.Header), claimsql.Present(r.Body)}
}
