package sqlapi

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// Newer, Transition and Enqueue leave it to the functions to refuse what cannot be stored.

func (s *store) Newer(ctx context.Context, tx pgx.Tx, resource string, rank hookonce.Rank) (newer bool, err error) {
	version, kind := &rank.N, rank.Kind
	if rank.IsZero() {
		version, kind = nil, hookonce.RankVersion
	}
	err = s.ask(ctx, tx, query{`SELECT %s.newer($1, $2, $3)`, []any{resource, version, string(kind)}, func(row pgx.Row) error { return row.Scan(&newer) }})
	return newer, err
}

func (s *store) Transition(ctx context.Context, tx pgx.Tx, entity, from, to string) (state string, move hookonce.Move, err error) {
	err = s.ask(ctx, tx, query{`SELECT state, outcome FROM %s.transition($1, $2, $3)`, []any{entity, from, to},
		func(row pgx.Row) error { return row.Scan(&state, &move) }})
	return state, move, err
}

func (s *store) Enqueue(ctx context.Context, tx pgx.Tx, e hookonce.Effect) error {
	if err := e.Ref.Validate(); err != nil { // the functions would normalise the key
		return err
	}
	var due *time.Time
	if !e.Due.IsZero() {
		due = &e.Due
	}
	return s.ask(ctx, tx, query{`SELECT %s.enqueue($1, $2::bytea, $3, $4, $5, $6)`,
		[]any{e.Name, e.Payload, e.Source, e.Key, e.Step, due}, ignore})
}
