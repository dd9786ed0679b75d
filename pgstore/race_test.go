package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A claim that waited for another transaction finds a failed attempt that its snapshot does not show.
// It must count on from that attempt: two attempts under one token could not be fenced off from each
// other.
func TestClaimCountsOnFromWhatItWaitedFor(t *testing.T) {
	claims := map[string]func(s *pgstore.Store, pool *pgxpool.Pool, req hookonce.ClaimRequest) (hookonce.Claim, error){
		"lease": func(s *pgstore.Store, _ *pgxpool.Pool, req hookonce.ClaimRequest) (hookonce.Claim, error) {
			return s.Claim(t.Context(), req)
		},
		"transaction": func(s *pgstore.Store, _ *pgxpool.Pool, req hookonce.ClaimRequest) (hookonce.Claim, error) {
			return s.Within(t.Context(), req, func(pgx.Tx, hookonce.Claim) error { return nil })
		},
		"the caller's transaction": func(s *pgstore.Store, pool *pgxpool.Pool, req hookonce.ClaimRequest) (c hookonce.Claim, err error) {
			err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				c, err = s.ClaimTx(t.Context(), tx, req)
				return err
			})
			return c, err
		},
	}
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			store, pool := newStore(t, pgstore.WithWait(time.Minute))
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			const failed = `INSERT INTO hookonce.claims (source, key, state, token, digest, first_seen, updated_at)
				VALUES ('billing', 'evt_1', 'failed', 1, 'first', now(), now())`
			if _, err := tx.Exec(t.Context(), failed); err != nil {
				t.Fatal(err)
			}
			req := request("evt_1")
			req.Digest = []byte("second")
			result := make(chan hookonce.Claim, 1)
			go func() {
				c, err := claim(store, pool, req)
				if err != nil {
					t.Error(err)
				}
				result <- c
			}()
			awaitWaiting(t, pool)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c := <-result; c.Verdict != hookonce.Acquired || c.Token != 2 || !c.Conflict {
				t.Errorf("claimed %+v; want token 2 and a conflict", c)
			}
		})
	}
}

// A claim that waits saw the one before as it was. What became of that meanwhile is not taken over,
// if it may not be.
func TestClaimOfWhatIsChangedMeanwhile(t *testing.T) {
	for change, want := range map[string]hookonce.Verdict{
		"state = 'done', lease_until = NULL":               hookonce.Duplicate,
		"state = 'failed', lease_until = NULL, pinned = 1": hookonce.Pinned,
		"lease_until = now() + interval '1 hour'":          hookonce.Busy,
	} {
		t.Run(want.String(), func(t *testing.T) {
			store, pool := newStore(t, pgstore.WithWait(time.Minute))
			req := request("evt_1")
			req.Digest, req.Lease = []byte("one"), -time.Second
			if _, err := store.Claim(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			owner, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := owner.Exec(t.Context(), "UPDATE hookonce.claims SET "+change); err != nil {
				t.Fatal(err)
			}
			result := make(chan hookonce.Claim, 1)
			go func() {
				other := req
				other.Digest = []byte("two")
				c, err := store.Claim(t.Context(), other)
				if err != nil {
					t.Error(err)
				}
				result <- c
			}()
			awaitWaiting(t, pool)
			if err := owner.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c := <-result; c.Verdict != want {
				t.Errorf("claimed %+v; want %v", c, want)
			}
		})
	}
}

// A server's process that dies while it commits has said nothing about the outcome, even though its
// last word is an error.
func TestServerDiesDuringTheCommit(t *testing.T) {
	store, pool := newStore(t)
	mustExec(t, pool, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$`)
	mustExec(t, pool, `CREATE CONSTRAINT TRIGGER die AFTER INSERT ON effects
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`)
	_, err := store.Within(t.Context(), request("evt_1"), func(tx pgx.Tx, _ hookonce.Claim) error {
		return effect(t.Context(), tx, "evt_1")
	})
	if !errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Errorf("error is %v", err)
	}
	mustClaim(t, store, "evt_1", hookonce.Acquired)
}
