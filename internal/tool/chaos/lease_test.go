package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/redis/go-redis/v9"
)

// lease is how long claims outlive their worker here.
const lease = 100 * time.Millisecond

// TestRedis freezes the server for longer than a lease, and loses connections, while workers are killed, stall, and
// come back when others have taken their claims over.
func TestRedis(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	n := newNetwork(t, server.Addr())
	r := newRound(t, func(d *dice) harm { return either(d, freeze(d, server), n.harm(d), n.harm(d), n.harm(d)) })
	out, book := newOutside(), newBook()
	for range 2 {
		store := openRedis(t, n.addr())
		w := &worker{bank: r.bank, store: store, client: out.client(), book: book}
		r.deliver = append(r.deliver, w.deliver)
	}
	r.witness = openRedis(t, server.Addr()).Lookup
	r.storm(t)
	out.audit(t, r.all)
	book.audit(t, r.claims(t))
}

func openRedis(t testing.TB, addr string) *redisstore.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialTimeout: time.Second})
	t.Cleanup(func() { must(t, client.Close()) })
	return redisstore.New(client)
}

// freeze has the server stand still for longer than a lease, every now and then.
func freeze(d *dice, server *redistest.Server) harm {
	return func(ctx context.Context) (bool, error) {
		select {
		case <-time.After(d.upTo(2 * lease)): // in which work goes on
		case <-ctx.Done():
			return false, nil
		}
		return true, server.Freeze(lease + d.upTo(lease))
	}
}

// worker does the work of events under leases.
type worker struct {
	*bank
	store  hookonce.Store
	client *http.Client
	book   *book
}

// ask is how long the store is asked about anything.
const ask = lease / 2

// deliver delivers an event to the worker.
func (w *worker) deliver(ctx context.Context, key string) (receipt, error) {
	asking, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	c, err := w.store.Claim(asking, hookonce.ClaimRequest{Ref: ref(key), Lease: lease})
	switch {
	case err != nil:
		return unacknowledged, err
	case c.Verdict == hookonce.Duplicate:
		return acknowledged, nil
	case c.Verdict != hookonce.Acquired:
		return unacknowledged, fmt.Errorf("the verdict is %v", c.Verdict)
	}
	w.book.won(c)
	return w.work(ctx, c)
}

var errKilled = errors.New("the worker was killed")

// work does the work under a claim, in a mood.
func (w *worker) work(ctx context.Context, c hookonce.Claim) (receipt, error) {
	ctx, cancel := context.WithCancel(hookonce.ContextWithRef(ctx, c.Ref))
	var beats sync.WaitGroup
	beats.Go(func() { w.heartbeat(ctx, c) })
	defer beats.Wait()
	defer cancel()
	mood := w.n(12)
	if mood == 0 {
		return unacknowledged, errKilled
	}
	if mood == 1 {
		return unacknowledged, w.record(ctx, c, "fail", func(ctx context.Context) error {
			return w.store.Fail(ctx, c, hookonce.Failure{Err: errDeclined})
		})
	}
	if err := charge(ctx, w.client, c.Key); err != nil {
		return unacknowledged, err
	}
	switch mood {
	case 2:
		return unacknowledged, errKilled
	case 3, 4: // it stalls, and does not know that its claim is somebody else's when it comes back
		cancel()
		beats.Wait()
		<-time.After(time.Until(c.Lease) + w.upTo(lease))
	case 5, 6: // it is slow, and its heartbeats keep the lease
		<-time.After(w.upTo(2 * lease))
	}
	err := w.record(context.WithoutCancel(ctx), c, "complete", func(ctx context.Context) error { return w.store.Complete(ctx, c) })
	if err != nil {
		return unacknowledged, err
	}
	return acknowledged, nil
}

// heartbeat extends the lease until ctx ends or it is lost.
func (w *worker) heartbeat(ctx context.Context, c hookonce.Claim) {
	ticker := time.NewTicker(lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := w.record(ctx, c, "extend", func(ctx context.Context) error {
			_, err := w.store.Extend(ctx, c, lease)
			return err
		})
		if errors.Is(err, hookonce.ErrStale) {
			return
		}
	}
}

// record has the store record something under c, if it can in time.
func (w *worker) record(ctx context.Context, c hookonce.Claim, what string, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	return w.book.record(c, what, func() error { return f(ctx) })
}

// book knows which tokens were won, and what was recorded under them.
type book struct {
	mu        sync.Mutex
	tokens    map[hookonce.Ref]map[int64]bool // that were won
	newest    map[hookonce.Ref]int64
	completed map[hookonce.Ref]int64 // the token under which the work was recorded as done
	stale     int                    // how often a worker was told that its claim was taken over
	faults    []string               // what may not happen
}

func newBook() *book {
	return &book{tokens: map[hookonce.Ref]map[int64]bool{}, newest: map[hookonce.Ref]int64{}, completed: map[hookonce.Ref]int64{}}
}

// won notes that a claim was won. Nobody else may have its token.
func (b *book) won(c hookonce.Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens[c.Ref][c.Token] {
		b.fault("%s: two workers have token %d", c.Ref, c.Token)
	}
	if b.tokens[c.Ref] == nil {
		b.tokens[c.Ref] = map[int64]bool{}
	}
	b.tokens[c.Ref][c.Token] = true
	b.newest[c.Ref] = max(b.newest[c.Ref], c.Token)
}

func (b *book) fault(format string, values ...any) {
	b.faults = append(b.faults, fmt.Sprintf(format, values...))
}

// record has the store record something under c. It must not if a newer token was won, or the work done, before it
// was asked.
func (b *book) record(c hookonce.Claim, what string, f func() error) error {
	b.mu.Lock()
	newest, done := b.newest[c.Ref], b.completed[c.Ref]
	b.mu.Unlock()
	err := f()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case errors.Is(err, hookonce.ErrStale):
		b.stale++
	case err != nil:
	case newest > c.Token:
		b.fault("%s: a worker could %s under token %d when token %d was won", c.Ref, what, c.Token, newest)
	case done != 0:
		b.fault("%s: a worker could %s under token %d when the work was done under token %d", c.Ref, what, c.Token, done)
	case what == "complete":
		b.completed[c.Ref] = c.Token
	}
	return err
}

// audit fails unless every claim is done under the token under which it was recorded so.
func (b *book) audit(t testing.TB, claims []hookonce.Claim) {
	t.Helper()
	for _, fault := range b.faults {
		t.Error(fault)
	}
	t.Logf("%d times a worker was told that its claim was taken over", b.stale)
	for _, c := range claims {
		if done := b.completed[c.Ref]; c.State != hookonce.StateDone || done != 0 && done != c.Token {
			t.Errorf("%s is %s under token %d, and was done under token %d", c.Ref, c.State, c.Token, done)
		}
	}
}
