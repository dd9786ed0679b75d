package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/relay"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// single returns a store with one connection, which knows itself by the name "single".
func single(t *testing.T, pool *pgxpool.Pool) *pgstore.Store {
	t.Helper()
	s := pgstore.New(open(t, strings.TrimSuffix(pool.Config().ConnString(), "&"), "pool_max_conns=1&application_name=single"))
	t.Cleanup(s.Close)
	return s
}

// enqueued stores an effect for each key.
func enqueued(t *testing.T, s *pgstore.Store, pool *pgxpool.Pool, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return s.Enqueue(t.Context(), tx, asks(key, "mail")) }); err != nil {
			t.Fatal(err)
		}
	}
}

// extending is a store that tells when leases were extended.
type extending struct {
	*pgstore.Store
	claims, effects chan struct{}
}

func (e extending) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	longer, err := e.Store.Extend(ctx, c, d)
	if err == nil {
		e.claims <- struct{}{}
	}
	return longer, err
}

func (e extending) ExtendEffect(ctx context.Context, q hookonce.QueuedEffect, d time.Duration) (hookonce.QueuedEffect, error) {
	longer, err := e.Store.ExtendEffect(ctx, q, d)
	if err == nil {
		e.effects <- struct{}{}
	}
	return longer, err
}

// A handler holds the only connection until others have done, and recorded, what they do under leases that have to be extended
// meanwhile: they do it once.
func TestWorkUnderALeaseIsDoneOnceBesideAFullPool(t *testing.T) {
	plain, pool := newStore(t)
	store := extending{single(t, pool), make(chan struct{}, 1000), make(chan struct{}, 1000)}
	enqueued(t, plain, pool, "evt_2")
	const lease = 3 * time.Second // of which the first third is waited for
	begun, full, observed, copied := make(chan struct{}, 2), make(chan struct{}), make(chan relay.Observation, 1), make(chan error, 1)
	work := func(ctx context.Context, extended <-chan struct{}) error {
		begun <- struct{}{}
		<-full
		for len(extended) > 0 { // before the pool was full
			<-extended
		}
		select {
		case <-extended:
			return nil
		case <-ctx.Done(): // the lease was lost
			return context.Cause(ctx)
		}
	}
	go func() {
		req := request("leased")
		req.Lease = lease
		_, err := hookonce.UnderLease(t.Context(), store, req, func(ctx context.Context, _ hookonce.Claim) error { return work(ctx, store.claims) })
		copied <- err
	}()
	carrier := relay.New(store, map[string]relay.Handler{"mail": func(ctx context.Context, _ hookonce.QueuedEffect) error { return work(ctx, store.effects) }},
		relay.WithLease(lease), relay.WithPoll(time.Hour), relay.WithObserver(func(_ context.Context, o relay.Observation) { observed <- o }))
	running, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- carrier.Run(running) }()
	<-begun
	<-begun

	holder := hold(t, store.Store, "evt_1")
	close(full)
	if err := <-copied; err != nil {
		t.Errorf("under a lease: %v", err)
	}
	if o := <-observed; o.Err != nil {
		t.Errorf("the relay: %v", o.Err)
	}
	holder.finish <- nil
	if err := <-holder.result; err != nil {
		t.Error(err)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if c, err := plain.Lookup(t.Context(), request("leased").Ref); err != nil || c.State != hookonce.StateDone || c.Token != 1 {
		t.Errorf("the claim is %+v, %v", c, err)
	}
	if done, err := plain.Effects(t.Context(), hookonce.StateDone, 0, 10); err != nil || len(done) != 1 || done[0].Token != 1 {
		t.Errorf("the effects that are done are %+v, %v", done, err)
	}
}

// Everything that records or extends goes past a full pool, on one connection, which Close closes.
func TestOutcomesAreRecordedBesideAFullPool(t *testing.T) {
	plain, pool := newStore(t)
	store := single(t, pool)
	enqueued(t, plain, pool, "complete", "fail", "extend")
	taken, err := store.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 3, Lease: time.Minute})
	if err != nil || len(taken) != 3 {
		t.Fatalf("took %v, %v", taken, err)
	}
	records := map[string]func(context.Context) error{
		"CompleteEffect": func(ctx context.Context) error { return store.CompleteEffect(ctx, taken[0]) },
		"FailEffect": func(ctx context.Context) error {
			return store.FailEffect(ctx, taken[1], hookonce.Failure{}, time.Now())
		},
		"ExtendEffect": func(ctx context.Context) error {
			_, err := store.ExtendEffect(ctx, taken[2], time.Second)
			return err
		},
	}
	for name, end := range endings {
		c := leased(t, store, name, time.Minute)
		records[name] = func(ctx context.Context) error { return end(ctx, store, c) }
	}
	holder := hold(t, store, "evt_1")
	for name, record := range records {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := record(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if n := connections(t, pool); n != 2 {
		t.Errorf("%d connections; want that of the handler, and one beside it", n)
	}
	store.Close()
	for connections(t, pool) != 1 {
		if t.Context().Err() != nil {
			t.Fatal("the one beside the pool was not closed")
		}
	}
	failure := errors.New("declined")
	holder.finish <- hookonce.Permanent(failure)
	if err := <-holder.result; !errors.Is(err, failure) || errors.Is(err, hookonce.ErrTraceLost) {
		t.Error(err)
	}
}

// connections returns how many the store of single has.
func connections(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'single'`
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A connection beside the pool that broke while nobody used it is opened anew.
func TestTheConnectionBesideThePoolIsReplaced(t *testing.T) {
	_, pool := newStore(t)
	store := single(t, pool)
	c := leased(t, store, "leased", time.Minute)
	holder := hold(t, store, "evt_1")
	extend := func() error {
		_, err := store.Extend(t.Context(), c, time.Second)
		return err
	}
	if err := extend(); err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'single' AND datname = current_database() AND pid <> $1", holder.pid)
	if err := extend(); err == nil {
		t.Fatal("the connection was not closed")
	}
	if err := extend(); err != nil {
		t.Error(err)
	}
	holder.finish <- nil
	if err := <-holder.result; err != nil {
		t.Error(err)
	}
}

// The connection beside the pool is made as those of the pool are, and where the program's hook
// refuses it none stays open.
func TestTheConnectionBesideThePoolIsMadeLikeThePools(t *testing.T) {
	_, pool := newStore(t)
	cfg, err := pgxpool.ParseConfig(strings.TrimSuffix(pool.Config().ConnString(), "&") + "&pool_max_conns=1&application_name=single")
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	var refused *pgx.Conn
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		if made++; made == 2 {
			refused = conn
			return errDeclined
		}
		return nil
	}
	store := pgstore.New(testdb.Pool(t, cfg))
	t.Cleanup(store.Close)
	c := leased(t, store, "leased", time.Minute)
	holder := hold(t, store, "evt_1")
	if err := store.Complete(t.Context(), c); !errors.Is(err, errDeclined) {
		t.Errorf("what the hook refuses is used: %v", err)
	}
	if refused == nil || !refused.IsClosed() {
		t.Errorf("what the hook refused stays open: %v", refused != nil)
	}
	if err := store.Complete(t.Context(), c); err != nil || made != 3 {
		t.Errorf("%v, and %d connections were made; want 3", err, made)
	}
	holder.finish <- nil
	if err := <-holder.result; err != nil {
		t.Error(err)
	}
}
