package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// As with pgstore, nobody is told of what is in the primary alone, before the standby has it that commits wait for. When
// a context ends, pgx breaks the connection, and lib/pq has the server end the wait and say that the commit succeeded.
func TestDoneIsWhatTheStandbyHas(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	standbys := map[string]*standbyCase{}
	for name, driver := range map[string]string{"pgx": "pgx", "pq": "postgres"} {
		standbys[name] = newStandbyCase(t, driver, primary.DSN(t))
	}
	standby := primary.Standby(t)
	must(t, standby.Deafen())
	var told sync.WaitGroup
	for name, c := range standbys {
		told.Go(func() { c.deaf(t, name) })
	}
	told.Wait()
	must(t, standby.Follow(primary))
	for name, c := range standbys {
		for way, call := range c.copies {
			if c, err := call(t.Context()); err != nil || c.State != hookonce.StateDone {
				t.Errorf("%s: %s, once the standby follows: %v, %v", name, way, c.State, err)
			}
		}
		for key, record := range c.outcomes {
			if err := record(t.Context()); err != nil {
				t.Errorf("%s: %s, once the standby follows: %v", name, key, err)
			}
		}
	}
}

// standbyCase is what is asked of a store over one driver.
type standbyCase struct {
	db       *sql.DB
	copies   map[string]func(context.Context) (hookonce.Claim, error)
	outcomes map[string]func(context.Context) error // by key
}

func newStandbyCase(t *testing.T, driver, dsn string) *standbyCase {
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = schema.Migrate(t.Context(), db, schema.Postgres, "")
	must(t, err)
	s := sqlstore.New(db, sqlstore.Postgres, sqlstore.WithPatience(2*time.Second))
	c := &standbyCase{db: db, outcomes: map[string]func(context.Context) error{}}
	c.copies = map[string]func(context.Context) (hookonce.Claim, error){
		"Within": func(ctx context.Context) (hookonce.Claim, error) {
			return s.Within(ctx, request, func(*sql.Tx, hookonce.Claim) error { return nil })
		},
		"Claim":  func(ctx context.Context) (hookonce.Claim, error) { return s.Claim(ctx, request) },
		"Lookup": func(ctx context.Context) (hookonce.Claim, error) { return s.Lookup(ctx, request.Ref) },
	}
	for key, record := range map[string]func(context.Context, hookonce.Claim) error{
		"Complete": s.Complete,
		"CompleteWith": func(ctx context.Context, c hookonce.Claim) error {
			return s.CompleteWith(ctx, c, hookonce.Response{Status: 200})
		},
		"Fail": func(ctx context.Context, c hookonce.Claim) error {
			return s.Fail(ctx, c, hookonce.Failure{Err: errDeclined, Dead: true})
		},
		"Fail and forget": func(ctx context.Context, c hookonce.Claim) error {
			return s.Fail(ctx, c, hookonce.Failure{Err: errDeclined, Forget: true})
		},
	} {
		claim, err := s.Claim(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}})
		must(t, err)
		c.outcomes[key] = func(ctx context.Context) error { return record(ctx, claim) }
	}
	return c
}

// deaf asks while the standby hears nothing, so that nobody may be told.
func (c *standbyCase) deaf(t *testing.T, name string) {
	var told sync.WaitGroup
	defer told.Wait()
	short := func(call func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return call(ctx)
	}
	told.Go(func() { // no caller ends a commit: the store gives up by itself
		for tries := 0; ; tries++ {
			_, err := c.copies["Within"](t.Context())
			if errors.Is(err, hookonce.ErrUnknownOutcome) {
				return
			}
			if err == nil || tries == 10 { // others end before the commit, where the machine is busy
				t.Errorf("%s: Within: %v, want an unknown outcome", name, err)
				return
			}
		}
	})
	for key, record := range c.outcomes {
		told.Go(func() {
			for recorded, once, tries := false, false, 0; !once && tries < 60; tries++ {
				once = recorded // and once more, when it is in the tables
				if short(record) == nil {
					t.Errorf("%s: %s: told that it is recorded (it was before: %v), and no standby has it", name, key, once)
					return
				}
				recorded = recorded || c.count(t, `state = 'processing' AND key = $1`, key) == 0
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); c.count(t, `state = 'done' AND key = $1`, request.Key) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s: the claim is nowhere", name)
			return
		}
	}
	for way, call := range c.copies {
		told.Go(func() {
			var claim hookonce.Claim
			if short(func(ctx context.Context) (err error) { claim, err = call(ctx); return err }) == nil {
				t.Errorf("%s: %s: a copy was told %v, and no standby has the work", name, way, claim.Verdict)
			}
		})
	}
}

// count returns how many claims like that are in the tables of the primary.
func (c *standbyCase) count(t *testing.T, condition, key string) (n int) {
	if err := c.db.QueryRowContext(t.Context(), `SELECT count(*) FROM hookonce.claims WHERE `+condition, key).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}
