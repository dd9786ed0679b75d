package idempotency

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/lru"
)

// maxCounted is of how many addresses, callers that were let in, and others it is known how much is left; of each so
// many, for each service. One of them takes up some 250 bytes. Those that were not heard of for the longest time are
// forgotten, and have everything again.
const maxCounted = 1 << 14

// answerUnit is how large an answer is that costs no more than its row, in bytes.
const answerUnit = 4 << 10

// budget bounds the rows that requests leave behind of which nothing came: whose answer is kept and
// no success, or that failed. A row that is let go again costs nothing, and one with a success gives back one more, so that
// whoever failed for an hour because the service was away is not held up afterwards.
//
// Strangers make up scopes as they like; so the address counts as well. But it counts apart for callers whom the
// service has let in before, so that strangers behind the same address do not keep them out.
type budget struct {
	perHour float64
	now     func() time.Time

	mu        sync.Mutex
	addresses *lru.Map[origin, *bucket]
	letIn     *lru.Map[caller, *bucket]
	others    *lru.Map[caller, *bucket]
}

// caller is the digest of a scope; the zero value is that of nobody in particular.
type caller [16]byte

// origin is where callers come from.
type origin struct {
	network netip.Prefix
	letIn   bool
}

// bucket is how many rows are left at a time.
type bucket struct {
	left float64
	at   time.Time
}

func newBudget(perHour int, now func() time.Time) *budget {
	return &budget{
		perHour: float64(perHour), now: now,
		addresses: lru.New[origin, *bucket](maxCounted),
		letIn:     lru.New[caller, *bucket](maxCounted),
		others:    lru.New[caller, *bucket](maxCounted),
	}
}

// visit is one request on its way through the store.
type visit struct {
	from     netip.Prefix
	by       caller
	answered int       // by the service; what is stored may be another answer, in place of one that is too large
	pays     []*bucket // what the row may cost is taken of these
}

type visitKey struct{}

// newVisit returns the request with what the store has to know of it.
func newVisit(r *http.Request, from netip.Addr, names []string) *http.Request {
	v := &visit{from: connlimit.Network(from)}
	if scope, err := scopeOf(r.Header, names); err == nil && len(names) > 0 {
		sum := sha256.Sum256([]byte(scope))
		v.by = caller(sum[:len(v.by)])
	}
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// take takes one row of what is left to v, or nothing and returns how long it is until there is one.
func (b *budget) take(v *visit) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, callers := b.now(), b.others
	known := b.knows(v.by)
	if known {
		callers = b.letIn
	}
	buckets := []*bucket{b.bucket(now, get(b.addresses, origin{v.from, known}))}
	if v.by != (caller{}) {
		buckets = append(buckets, b.bucket(now, get(callers, v.by)))
	}
	v.pays = buckets
	for _, bucket := range buckets {
		if lacks := 1 - bucket.left; lacks > 0 {
			wait = max(wait, time.Duration(lacks/b.perHour*float64(time.Hour)))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, bucket := range buckets {
		bucket.left--
	}
	return 0
}

// knows reports whether the service has let a caller in.
func (b *budget) knows(c caller) bool {
	_, ok := b.letIn.Peek(c)
	return ok
}

// get returns the bucket of k, a new one if there is none.
func get[K comparable](counts *lru.Map[K, *bucket], k K) *bucket {
	found, ok := counts.Get(k)
	if !ok {
		found = &bucket{}
		counts.Add(k, found)
	}
	return found
}

// bucket fills up what has come since it was looked at.
func (b *budget) bucket(now time.Time, one *bucket) *bucket {
	switch {
	case one.at.IsZero():
		one.left, one.at = b.perHour, now
	case now.After(one.at):
		one.left, one.at = min(b.perHour, one.left+now.Sub(one.at).Hours()*b.perHour), now
	}
	return one
}

// give gives n rows back, or takes more of them if it is negative. A debt is an hour's worth at most, so that one outage of the
// service does not keep a caller out for days; what is spent beyond that is free.
func (b *budget) give(v *visit, n float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bucket := range v.pays {
		bucket.left = min(b.perHour, max(-b.perHour, bucket.left+n))
	}
}

// admit says that the service has let the caller in.
func (b *budget) admit(v *visit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.by == (caller{}) || b.knows(v.by) {
		return
	}
	b.letIn.Add(v.by, b.bucket(b.now(), get(b.others, v.by)))
	b.others.Remove(v.by)
}

// bounded is a store in which nobody leaves more behind than the budget allows.
type bounded struct {
	hookonce.ResponseStore
	budget *budget
}

// Await implements [hookonce.Awaiter], as far as the store does.
func (s bounded) Await(ctx context.Context, ref hookonce.Ref) error {
	if a, ok := s.ResponseStore.(hookonce.Awaiter); ok {
		return a.Await(ctx, ref)
	}
	return errors.ErrUnsupported
}

// Claim implements [hookonce.Store]. A key that is on record costs nothing, and is taken whatever is left: the first attempt
// has paid for its row, and later ones pay for no more than a long answer.
func (s bounded) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	v := visitOf(ctx)
	wait := s.budget.take(v)
	if wait > 0 {
		switch _, err := s.Lookup(ctx, req.Ref); {
		case errors.Is(err, hookonce.ErrNotFound):
			return hookonce.Claim{}, hookonce.RetryAfter(wait, hookonce.ErrTooManyKeys)
		case err != nil:
			return hookonce.Claim{}, err
		}
	}
	c, err := s.ResponseStore.Claim(ctx, req)
	if row := err == nil && c.Verdict == hookonce.Acquired && c.Token == 1; !row && wait == 0 {
		s.budget.give(v, 1)
	}
	return c, err
}

// Fail implements [hookonce.Store].
func (s bounded) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	err := s.ResponseStore.Fail(ctx, c, f)
	if err == nil && f.Forgets(c.Token) {
		s.budget.give(visitOf(ctx), 1)
	}
	return err
}

// CompleteWith implements [hookonce.ResponseStore].
func (s bounded) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	err := s.ResponseStore.CompleteWith(ctx, c, r)
	switch v := visitOf(ctx); {
	case err != nil:
	case success(cmp.Or(v.answered, r.Status)):
		s.budget.give(v, 2)
		s.budget.admit(v)
		connlimit.Known(ctx)
	default:
		s.budget.give(v, -float64(size(r)/answerUnit))
	}
	return err
}

// success reports whether an answer of that status lets the caller in. A redirect does not, because many applications
// send strangers to the page where they log in; 303 does, the answer to a form that was taken.
func success(status int) bool {
	return status < http.StatusMultipleChoices || status == http.StatusSeeOther
}

// size is how much of an answer is stored.
func size(r hookonce.Response) int {
	n := len(r.Body)
	for name, lines := range r.Header {
		for _, line := range lines {
			n += len(name) + len(line)
		}
	}
	return n
}

// Response implements [hookonce.ResponseStore].
func (s bounded) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	r, err := s.ResponseStore.Response(ctx, ref)
	if err == nil && success(r.Status) {
		s.budget.admit(visitOf(ctx))
	}
	return r, err
}
