package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
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
	tag, err := tx.Exec(ctx, s.sql.keep, append([]any{ref.Source, ref.Key}, kept(r)...)...)
	if err == nil && tag.RowsAffected() == 0 {
		err = hookonce.ErrNotFound
	}
	return wrap("keep the response of", ref, oversized(err))
}

// maxField is what a value can hold, less what else is in the message that brings it.
// https://www.postgresql.org/docs/current/limits.html
const maxField = 1<<30 - 1<<16

// fits returns an error if r is larger than the server takes.
func fits(r hookonce.Response) error {
	if len(r.Body) > maxField {
		return fmt.Errorf("%w: Postgres takes at most %d bytes, and this has %d", hookonce.ErrResponseTooLarge, maxField, len(r.Body))
	}
	return nil
}

// oversized adds to the error of a statement with a response that this was too large, if that is what it says.
func oversized(err error) error {
	if strings.HasPrefix(pgerror.State(err), "54") { // program_limit_exceeded
		return fmt.Errorf("%w: %w", hookonce.ErrResponseTooLarge, err)
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
	err := s.pool.QueryRow(ctx, s.sql.response, ref.Source, ref.Key).Scan(&r.Status, &lines, &r.Body)
	if errors.Is(err, pgx.ErrNoRows) {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Response{}, wrap("read the response of", ref, err)
	}
	r.Header = header.Decode(lines)
	return r, nil
}

// kept are the values of the columns of a response.
func kept(r hookonce.Response) []any {
	return []any{r.Status, header.Encode(r.Header), present(r.Body)}
}

// present returns b in the form of a column that takes no null.
func present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// keptSQL stands between changedSQL and standsSQL, and keeps the response of a claim that was changed.
const keptSQL = `, kept AS (
	INSERT INTO {responses} (source, key, token, status, header, body)
	SELECT $1::text, $2::text, $3::bigint, $8::integer, $9::bytea, $10::bytea FROM changed` + replaceSQL + `
)`

// keepSQL takes the token from the claim that the same transaction made, which is done from the start. One in
// another state is somebody else's.
const keepSQL = `
INSERT INTO {responses} (source, key, token, status, header, body)
SELECT source, key, token, $3::integer, $4::bytea, $5::bytea FROM {claims} WHERE source = $1::text AND key = $2::text AND state = 'done'` + replaceSQL

const replaceSQL = `
ON CONFLICT (source, key) DO UPDATE SET
	token = excluded.token, status = excluded.status, header = excluded.header, body = excluded.body`

const responseSQL = `SELECT status, header, body FROM {responses} WHERE source = $1::text AND key = $2::text`
