// Package remotekeys fetches the public keys and certificates that senders sign with, and remembers them.
//
// [Cache] bounds what strangers can cause by naming keys, [Certificates] is one of certificates at addresses that
// requests name, and [Fetch] gets what is behind one address.
package remotekeys

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/lru"
)

// Requests name the certificate or key that they were signed with. Fetching it happens before anything about the request
// is known to be true, so strangers can cause it: all of it is bounded, and made in such an order that the name that
// genuine requests have in common comes first, however many names are made up.
const (
	fetchAtOnce = 16                     // per cache, of names that were found before, and of others
	fetchWait   = 2 * time.Second        // how long a request waits for its key
	fetchHope   = 500 * time.Millisecond // how long it does if too few have asked for that name yet
	fetchTick   = 20 * time.Millisecond  // between two looks whether more may be fetched
	keepNames   = 256                    // names that were found
	keepMissing = 2048                   // names that were not
	keepAsked   = 16 << 10               // names of which it is known how often they were asked for
	keepQueued  = 1024                   // names that wait to be fetched
	keepFailure = time.Minute            // how long it is not asked again for what the sender does not have
	keepOutage  = 2 * time.Second        // and for what it could not be asked for
	keepStale   = 24 * time.Hour         // how long a key is used after the time when it should have been renewed
)

// Pace is how many names that were not found before are fetched, because strangers can make up names without end.
type Pace struct {
	burst     float64
	perSecond float64
}

// OfFiles is the pace of what anybody may fetch, OfAccount that of questions which the sender counts
// (developer.ebay.com/api-docs/commerce/notification/resources/public_key/methods/getPublicKey).
var (
	OfFiles   = Pace{burst: 256, perSecond: 20}
	OfAccount = Pace{burst: 256, perSecond: 1}
)

var (
	errFetchBusy = errors.New("too many keys of the sender are being fetched; try again")
	errFetchSlow = errors.New("the sender's key is not there yet; try again")
)

// Cache remembers the certificates or keys of a sender by their names. Safe for concurrent use.
//
// The same name is fetched once at a time. Names that were found before have slots of their own, and are used while they
// are renewed. Of others the one that is asked for most comes first: genuine requests have few names in common. The
// more of the pace is used up, the more a name must be asked for, so names that are made up once each do not use up what
// a name that comes again needs.
type Cache[K any] struct {
	fetch func(ctx context.Context, name string, now time.Time) (key K, use Validity, err error)
	pace  Pace
	seed  maphash.Seed

	mu      sync.Mutex
	found   *lru.Map[string, kept[K]]
	missing *lru.Map[string, miss]
	asked   *lru.Map[uint64, demand] // by the hash of the name
	flights map[string]*flight[K]
	queue   []*flight[K] // those that wait for their turn
	known   int          // slots that are taken, by names that were found before
	unknown int          // and by others
	tokens  float64      // what is left of the pace
	filled  time.Time    // when tokens was right; bounds of what we do go by our own clock, not by that of requests
	ticking bool
}

// Validity says until when a key is used without asking again, and until when it is if the sender cannot be asked.
type Validity struct{ fresh, last time.Time }

// RenewedAfter is the validity of a key that is asked for again after a while.
func RenewedAfter(now time.Time, after time.Duration) Validity {
	return Validity{fresh: now.Add(after), last: now.Add(after + keepStale)}
}

type kept[K any] struct {
	key K
	Validity
	retry time.Time // when it may be renewed again
}

type miss struct {
	cause error
	until time.Time
}

// demand says how much a name is asked for. The score is one after the first request, and grows by one with each further
// one, by less if they come at once. What it is above one is halved every second: names that were made up long ago and
// not fetched have no advantage.
type demand struct {
	score float64
	at    time.Time // of the last request
	tick  time.Time // the first of those that come at once
	n     int       // and their number
}

// demandTick is how long requests for a name come at once: the second of them counts a half, the third a third.
const demandTick = 100 * time.Millisecond

func (d *demand) note(now time.Time) {
	if now.Sub(d.tick) >= demandTick {
		d.tick, d.n = now, 0
	}
	d.n++
	if d.score > 0 {
		d.score = 1 + (d.score-1)*math.Exp2(-now.Sub(d.at).Seconds())
	}
	d.score += 1 / float64(d.n)
	d.at = now
}

// flight is the fetching of one name.
type flight[K any] struct {
	name    string
	known   bool
	now     time.Time // of the request
	asked   demand
	waiting int
	begun   bool
	done    chan struct{} // closed when key and err are set
	key     K
	err     error
}

// New returns a cache in front of fetch, which fetches names that were not found before at that pace.
func New[K any](p Pace, fetch func(context.Context, string, time.Time) (K, Validity, error)) *Cache[K] {
	return &Cache[K]{
		fetch: fetch, pace: p, seed: maphash.MakeSeed(),
		found:   lru.New[string, kept[K]](keepNames),
		missing: lru.New[string, miss](keepMissing),
		asked:   lru.New[uint64, demand](keepAsked),
		flights: map[string]*flight[K]{}, tokens: p.burst,
	}
}

// Get returns the key of that name for a request. Every error means that it cannot be decided now whether the request is
// authentic.
func (c *Cache[K]) Get(name string, req *hookonce.Request) (K, error) {
	f, key, err := c.recall(name, req.Now)
	if f == nil {
		return key, err
	}
	hope := fetchHope
	if req.Hurry {
		hope = 0
	}
	return c.wait(f, hope)
}

// Renew is Get for a request that needs another key than the one that is kept under the name: that is fetched again,
// though once a minute at most, whatever came of it the last time.
func (c *Cache[K]) Renew(name string, req *hookonce.Request) (K, error) {
	f := c.reboard(name, req.Now)
	if f == nil {
		return c.Get(name, req)
	}
	return c.wait(f, fetchHope)
}

// reboard returns the flight that renews what is found under the name, nil if it is too early for that.
func (c *Cache[K]) reboard(name string, now time.Time) *flight[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, known := c.found.Get(name)
	if !known || now.Before(k.retry) {
		return nil
	}
	f := c.board(name, true, now)
	if f != nil {
		f.waiting++
	}
	return f
}

// recall returns what is remembered under the name, or the flight to wait for.
func (c *Cache[K]) recall(name string, now time.Time) (f *flight[K], key K, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, known := c.found.Get(name)
	if known && now.Before(k.last) {
		if !now.Before(k.fresh) && !now.Before(k.retry) {
			c.board(name, true, now)
		}
		return nil, k.key, nil
	}
	if m, ok := c.missing.Get(name); ok && now.Before(m.until) {
		return nil, key, m.failure(name)
	}
	if f = c.board(name, known, now); f == nil {
		return nil, key, errFetchBusy
	}
	f.waiting++
	return f, key, nil
}

func (m miss) failure(name string) error {
	return fmt.Errorf("the sender's key %q cannot be fetched: %w", name, m.cause)
}

// board returns the flight of that name, a new one if there is none, or nil if there is no room for it.
func (c *Cache[K]) board(name string, known bool, now time.Time) *flight[K] {
	f := c.flights[name]
	if f == nil {
		f = &flight[K]{name: name, known: known, now: now, done: make(chan struct{})}
		if !known {
			f.asked, _ = c.asked.Get(c.hash(name))
		}
	}
	if f.asked.note(time.Now()); !known {
		c.asked.Add(c.hash(name), f.asked)
	}
	if c.flights[name] == nil {
		if len(c.queue) >= keepQueued && !c.displace(f) {
			return nil
		}
		c.flights[name] = f
		c.queue = append(c.queue, f)
	}
	c.dispatch()
	return f
}

func (c *Cache[K]) hash(name string) uint64 { return maphash.String(c.seed, name) }

// displace makes room for f in the queue: one that was asked for less often, or at random one that was asked for as
// often, gives way.
func (c *Cache[K]) displace(f *flight[K]) bool {
	least := c.pick(func(a, b *flight[K]) bool { return !a.known && (b.known || a.asked.score < b.asked.score) })
	if least.known || !f.known && least.asked.score > f.asked.score {
		return false
	}
	c.leave(least)
	least.err = errFetchBusy
	close(least.done)
	return true
}

// pick returns one of the queue that no other is before, one at random if there are several.
func (c *Cache[K]) pick(before func(a, b *flight[K]) bool) *flight[K] {
	best, alike := c.queue[0], 1
	for _, f := range c.queue[1:] {
		switch {
		case before(f, best):
			best, alike = f, 1
		case !before(best, f):
			if alike++; rand.IntN(alike) == 0 {
				best = f
			}
		}
	}
	return best
}

// leave takes a flight that has not begun out of the queue.
func (c *Cache[K]) leave(f *flight[K]) {
	c.queue = slices.DeleteFunc(c.queue, func(other *flight[K]) bool { return other == f })
	delete(c.flights, f.name)
}

// dispatch begins the flights for which there is room. The caller holds the lock.
func (c *Cache[K]) dispatch() {
	c.fill()
	for len(c.queue) > 0 {
		f := c.pick(func(a, b *flight[K]) bool {
			return a.known && !b.known || a.known == b.known && a.asked.score > b.asked.score
		})
		if f.known && c.known >= fetchAtOnce { // then all of its sort wait; others may begin
			f = c.pick(func(a, b *flight[K]) bool { return !a.known && (b.known || a.asked.score > b.asked.score) })
		}
		if !c.admit(f) {
			break
		}
		c.queue = slices.DeleteFunc(c.queue, func(other *flight[K]) bool { return other == f })
		f.begun = true
		go c.fly(f)
	}
	if len(c.queue) > 0 && !c.ticking {
		c.ticking = true
		time.AfterFunc(fetchTick, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ticking = false
			c.dispatch()
		})
	}
}

// fill gives back what the time brings.
func (c *Cache[K]) fill() {
	now := time.Now()
	if since := now.Sub(c.filled).Seconds(); since > 0 {
		c.tokens = min(c.pace.burst, c.tokens+since*c.pace.perSecond)
		c.filled = now
	}
}

// admit takes a slot for a flight, if one is free, and what it needs of the pace.
func (c *Cache[K]) admit(f *flight[K]) bool {
	switch {
	case f.known && c.known < fetchAtOnce:
		c.known++
	case !f.known && c.unknown < fetchAtOnce && c.deserves(f):
		c.unknown++
		c.tokens--
	default:
		return false
	}
	return true
}

// deserves reports whether the name is asked for enough for what is left of the pace: once while more than a half is left,
// twice down to a quarter, and so on.
func (c *Cache[K]) deserves(f *flight[K]) bool {
	return f.known || c.tokens >= 1 && 2*f.asked.score*c.tokens >= c.pace.burst
}

// fly fetches the key and remembers the outcome.
func (c *Cache[K]) fly(f *flight[K]) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	key, use, err := c.fetch(ctx, f.name, f.now)
	c.mu.Lock()
	defer c.mu.Unlock()
	f.key, f.err = key, c.remember(f, key, use, err)
	delete(c.flights, f.name)
	close(f.done)
	if f.known {
		c.known--
	} else {
		c.unknown--
	}
	c.dispatch()
}

// remember keeps the outcome of a flight, and returns its error. A key that was good is given up when the sender says
// that there is none, or when its time is over, not because the sender cannot be asked.
func (c *Cache[K]) remember(f *flight[K], key K, use Validity, err error) error {
	if err == nil {
		c.missing.Remove(f.name)
		c.asked.Remove(c.hash(f.name))
		c.found.Add(f.name, kept[K]{key: key, Validity: use, retry: f.now.Add(keepFailure)})
		return nil
	}
	old, known := c.found.Peek(f.name)
	if known && f.now.Before(old.last) && !gone(err) {
		old.retry = f.now.Add(keepFailure)
		c.found.Add(f.name, old)
		return miss{cause: err}.failure(f.name)
	}
	m := miss{err, f.now.Add(keepFailure)}
	var passing outage
	if errors.As(err, &passing) {
		m.until = f.now.Add(keepOutage)
	} else {
		c.found.Remove(f.name)
		c.asked.Remove(c.hash(f.name))
	}
	c.missing.Add(f.name, m)
	return m.failure(f.name)
}

// wait returns the outcome of a flight, or an error if it takes too long, or is not worthwhile after the time for hope.
func (c *Cache[K]) wait(f *flight[K], hope time.Duration) (key K, err error) {
	for _, d := range []time.Duration{hope, fetchWait - hope} {
		timer := time.NewTimer(d)
		select {
		case <-f.done:
			timer.Stop()
			return f.key, f.err
		case <-timer.C:
		}
		if !c.worthwhile(f) {
			break
		}
	}
	return key, c.abandon(f)
}

// worthwhile reports whether the flight has begun, or will when a slot is free.
func (c *Cache[K]) worthwhile(f *flight[K]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fill()
	return f.begun || c.deserves(f)
}

// abandon is called by a request that waits no longer. A flight that nobody waits for does not begin; that its name was
// asked for is remembered.
func (c *Cache[K]) abandon(f *flight[K]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 && !f.begun && c.flights[f.name] == f {
		c.leave(f)
	}
	return errFetchSlow
}
