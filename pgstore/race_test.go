package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
)

// A claim that waited for another transaction finds a failed attempt that its snapshot does not show.
// It must count on from that attempt: two attempts under one token could not be fenced off from each
// other.
func TestClaimCountsOnFromWhatItWaitedFor(t *testing.T) {
	claims := map[string]func(s *pgstore.Store, req hookonce.ClaimRequest) (hookonce.Claim, error){
		"lease": func(s *pgstore.Store, req hookonce.ClaimRequest) (hookonce.Claim, error) {
			return s.Claim(t.Context(), req)
		},
		"transaction": func(s *pgstore.Store, req hookonce.ClaimRequest) (hookonce.Claim, error) {
			return s.Within(t.Context(), req, func(pgx.Tx, hookonce.Claim) error { return nil })
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
				c, err := claim(store, req)
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
