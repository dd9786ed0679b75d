package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/storetest"
	"github.com/jackc/pgx/v5"
)

// The connection is cut before a COMMIT or a statement reaches the server, or after the server
// carried it out and before its answer arrives.
func TestFaults(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	p, through := newProxy(t, dsn)
	base := suite(t, dsn, through, "default_query_exec_mode=exec") // every statement travels with its text
	cfg := testdb.Faulty(base, p)
	storetest.RunFaults(t, cfg)
	storetest.RunTallier(t, cfg)
}

// A statement that gets lost inside the transaction, before or after the server carried it out, takes the
// whole attempt with it. The next one finds nothing of it.
func TestStatementsLostInTheTransaction(t *testing.T) {
	response := hookonce.Response{Status: 201}
	asks := map[string]func(ctx context.Context, s *pgstore.Store, tx pgx.Tx, ref hookonce.Ref) (first bool, err error){
		"KeepResponse": func(ctx context.Context, s *pgstore.Store, tx pgx.Tx, ref hookonce.Ref) (bool, error) {
			return true, s.KeepResponse(ctx, tx, ref, response)
		},
		"Enqueue": func(ctx context.Context, s *pgstore.Store, tx pgx.Tx, ref hookonce.Ref) (bool, error) {
			return true, s.Enqueue(ctx, tx, hookonce.Effect{Ref: ref, Name: "mail"})
		},
		"Newer": func(ctx context.Context, s *pgstore.Store, tx pgx.Tx, ref hookonce.Ref) (bool, error) {
			return s.Newer(ctx, tx, ref.Key, hookonce.Version(1))
		},
		"Transition": func(ctx context.Context, s *pgstore.Store, tx pgx.Tx, ref hookonce.Ref) (bool, error) {
			_, move, err := s.Transition(ctx, tx, ref.Key, "", "paid")
			return move == hookonce.Moved, err
		},
	}
	p, through := newProxy(t, pgtest.DSN(t))
	pool := open(t, through, "default_query_exec_mode=exec")
	store := pgstore.New(pool)
	pgtest.Migrate(t, pool, "")
	for name, ask := range asks {
		for _, persisted := range []bool{false, true} {
			ref := request(fmt.Sprint(name, " persisted: ", persisted)).Ref
			attempt := func(before func()) (first bool, err error) {
				_, err = store.Within(t.Context(), hookonce.ClaimRequest{Ref: ref}, func(tx pgx.Tx, _ hookonce.Claim) (err error) {
					before()
					first, err = ask(t.Context(), store, tx, ref)
					return err
				})
				return first, err
			}
			_, err := attempt(func() { p.Fail(testdb.IsWrite, persisted) })
			if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) || errors.Is(err, hookonce.ErrTraceLost) {
				t.Errorf("%s: the first attempt ended with %v", ref, err)
			}
			if first, err := attempt(func() {}); !first || err != nil {
				t.Errorf("%s: the second attempt ended with %v, %v", ref, first, err)
			}
		}
	}
	if taken, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 10, Lease: time.Minute}); err != nil || len(taken) != 2 {
		t.Errorf("took %+v, %v", taken, err)
	}
}

// What a COMMIT is answered with tells whether anything was committed. Package sqlstore has the same test.
func TestCommitIsAnswered(t *testing.T) {
	store, pool := newStore(t)
	mustExec(t, pool, pgtest.AnswerCommit)
	for code, unknown := range pgtest.CommitAnswers {
		req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: code}}
		_, err := store.Within(t.Context(), req, func(tx pgx.Tx, _ hookonce.Claim) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO answers VALUES ($1)", code)
			return err
		})
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) != unknown {
			t.Errorf("%s: %v, want an unknown outcome: %v", code, err, unknown)
		}
	}
}
