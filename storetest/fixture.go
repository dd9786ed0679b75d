package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookonce/hookonce"
)

// Options is what a store under test is opened with.
type Options struct {
	// Clock is where the store takes its time from.
	Clock func() time.Time
	// Wait is the store's bounded wait for another transaction; zero means the store's default.
	Wait time.Duration
}

// Config says how to open a store in lease mode.
type Config struct {
	// Open makes a fresh, empty database and returns a function that opens stores on it. Stores
	// opened by several calls share nothing but the database, like processes. Open registers the
	// cleanup with t.
	Open func(t testing.TB) func(Options) hookonce.Store
	// MaxResponse is how large a response may be that the store keeps, in bytes; zero: a mebibyte and more. Larger
	// ones it must refuse.
	MaxResponse int
}

// TxConfig says how to open a store whose database also holds the effect.
type TxConfig[Tx any] struct {
	// Open makes a fresh, empty database. It registers the cleanup with t.
	Open func(t testing.TB) Database[Tx]
	// MaxResponse is as in [Config].
	MaxResponse int
	// AtCommit says that it is decided at the commit who wins, as [hookonce.TxStore] allows: no transaction waits for
	// another one, of copies that overlap more than one may run its handler, and one commits.
	AtCommit bool
	// Ahead says that handlers run before anything is known of the claim, as [hookonce.TxStore] allows: also for requests that are
	// not given it, of which nothing remains, and a second time for those that get another claim than the first was told.
	Ahead bool
}

// Lease returns the configuration that tests the same store in lease mode.
func (cfg TxConfig[Tx]) Lease() Config {
	return Config{MaxResponse: cfg.MaxResponse, Open: func(t testing.TB) func(Options) hookonce.Store {
		db := cfg.Open(t)
		return func(o Options) hookonce.Store { return db.Store(o) }
	}}
}

// Database is a fresh database together with what the suite does to it besides claiming.
type Database[Tx any] struct {
	// Store opens a store. Stores opened by several calls share nothing but the database.
	Store func(Options) hookonce.TxStore[Tx]
	// Begin, Commit and Rollback are the driver's transaction, for ClaimTx.
	Begin    func(ctx context.Context) (Tx, error)
	Commit   func(ctx context.Context, tx Tx) error
	Rollback func(ctx context.Context, tx Tx) error
	// Effect records, inside tx, that the effect named id happened once more.
	Effect func(ctx context.Context, tx Tx, id string) error
	// Exec runs a statement inside tx that ends the transaction, such as COMMIT, as a handler should not. It is nil where there
	// are no such statements.
	Exec func(ctx context.Context, tx Tx, statement string) error
	// Effects returns how often each effect happened, as another connection sees it.
	Effects func(ctx context.Context) (map[string]int, error)

	// FailCommit makes the next commit of a transaction fail as if the connection were lost: after
	// the commit took effect if persisted, and before it reached the database otherwise. Only
	// [RunFaults] needs it.
	FailCommit func(persisted bool)
	// FailWrite does the same to the next statement outside a transaction that inserts, updates or
	// deletes a claim or an effect. If it is nil, [RunFaults] checks commits only.
	FailWrite func(persisted bool)
}

// Clock is a clock that moves when it is told to. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at a fixed time.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// lease is the lease that cases claim with, unless they are about leases.
const lease = time.Minute

// request asks for a key with a lease.
func request(key string) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{
		Ref: hookonce.Ref{Source: "billing", Key: key}, Type: "invoice.paid",
		Digest: []byte("0123456789abcdef"), Lease: lease,
	}
}

// otherContent is request with another digest.
func otherContent(key string) hookonce.ClaimRequest {
	r := request(key)
	r.Digest = []byte("fedcba9876543210")
	return r
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// errorOf is the error of a call whose answer does not matter.
func errorOf[V any](_ V, err error) error { return err }

// refuses checks that err wraps target.
func refuses(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want one that wraps %q", err, target)
	}
}

// claim claims and checks the verdict.
func claim(t testing.TB, s hookonce.Store, req hookonce.ClaimRequest, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), req)
	ok(t, err)
	verdict(t, c, want)
	return c
}

func verdict(t testing.TB, c hookonce.Claim, want hookonce.Verdict) {
	t.Helper()
	if c.Verdict != want {
		t.Fatalf("verdict is %q, want %q (claim %#v)", c.Verdict, want, c)
	}
}

func lookup(t testing.TB, s hookonce.Store, ref hookonce.Ref) hookonce.Claim {
	t.Helper()
	c, err := s.Lookup(t.Context(), ref)
	ok(t, err)
	return c
}

// absent checks that nothing is stored under ref. A reference that cannot be stored may also be
// refused as such.
func absent(t testing.TB, s hookonce.Store, ref hookonce.Ref) {
	t.Helper()
	c, err := s.Lookup(t.Context(), ref)
	if !errors.Is(err, hookonce.ErrNotFound) && !errors.Is(err, hookonce.ErrInvalidRef) {
		t.Fatalf("Lookup(%q) = %#v, %v; want ErrNotFound", ref, c, err)
	}
}

// stored checks the state and the token under ref, and returns the claim.
func stored(t testing.TB, s hookonce.Store, ref hookonce.Ref, state hookonce.State, token int64) hookonce.Claim {
	t.Helper()
	c := lookup(t, s, ref)
	if c.State != state || c.Token != token {
		t.Fatalf("stored claim is %s with token %d, want %s with token %d (%#v)", c.State, c.Token, state, token, c)
	}
	return c
}

// same compares; empty is as good as nil.
func same[V any](t testing.TB, what string, got, want V) {
	t.Helper()
	if d := diff(got, want); d != "" {
		t.Fatalf("%s: -got +want\n%s", what, d)
	}
}

func diff(got, want any) string { return cmp.Diff(got, want, cmpopts.EquateEmpty()) }

// unchanged runs f and checks that the claim under ref is what it was before.
func unchanged(t testing.TB, s hookonce.Store, ref hookonce.Ref, f func()) {
	t.Helper()
	before := lookup(t, s, ref)
	f()
	same(t, "the stored claim was changed", lookup(t, s, ref), before)
}

// conflict checks the flag.
func conflict(t testing.TB, c hookonce.Claim, want bool) {
	t.Helper()
	if c.Conflict != want {
		t.Fatalf("conflict is %v, want %v (claim %#v)", c.Conflict, want, c)
	}
}

// effects checks how often each effect happened.
func (f *txFixture[Tx]) effects(t testing.TB, want map[string]int) {
	t.Helper()
	got, err := f.db.Effects(t.Context())
	ok(t, err)
	same(t, "effects", got, want)
}

func contains(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Fatalf("%q does not say %q", text, want)
	}
}

// fixture is a store in lease mode over a fresh database.
type fixture struct {
	hookonce.Store
	clock       *Clock
	open        func(Options) hookonce.Store
	maxResponse int
}

// another opens a further store on the same database and the same clock.
func (f *fixture) another() hookonce.Store { return f.open(Options{Clock: f.clock.Now}) }

// inner returns the store without the fixture, for what it has besides being a store.
func (f *fixture) inner() hookonce.Store { return f.Store }

type leaseCase struct {
	name string
	run  func(t *testing.T, f *fixture)
}

func (cfg Config) cases(t *testing.T, noun string, cases []leaseCase) {
	t.Run(noun, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, cfg.fresh(t)) })
		}
	})
}

func (cfg Config) fresh(t testing.TB) *fixture {
	f := &fixture{clock: NewClock(), open: cfg.Open(t), maxResponse: cfg.MaxResponse}
	f.Store = f.another()
	return f
}

// txFixture is a store in both modes over a fresh database.
type txFixture[Tx any] struct {
	hookonce.TxStore[Tx]
	db          Database[Tx]
	clock       *Clock
	names       int // that the case made up; see next
	maxResponse int
	ahead       bool
}

// another opens a further store on the same database and the same clock, with its own bounded wait.
func (f *txFixture[Tx]) another(wait time.Duration) hookonce.TxStore[Tx] {
	return f.db.Store(Options{Clock: f.clock.Now, Wait: wait})
}

// next returns a number that the case has not used yet. It is not for concurrent use.
func (f *txFixture[Tx]) next() int {
	f.names++
	return f.names
}

// inner returns the store without the fixture, for what it has besides being a store.
func (f *txFixture[Tx]) inner() hookonce.Store { return f.TxStore }

type txCase[Tx any] struct {
	name string
	run  func(t *testing.T, f *txFixture[Tx])
}

func (cfg TxConfig[Tx]) cases(t *testing.T, noun string, cases []txCase[Tx]) {
	t.Run(noun, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, cfg.fresh(t)) })
		}
	})
}

func (cfg TxConfig[Tx]) fresh(t testing.TB) *txFixture[Tx] {
	f := &txFixture[Tx]{db: cfg.Open(t), clock: NewClock(), maxResponse: cfg.MaxResponse, ahead: cfg.Ahead}
	f.TxStore = f.another(0)
	return f
}

func nothing[Tx any](Tx, hookonce.Claim) error { return nil }

// invalidRefs cannot be stored.
func invalidRefs() map[string]hookonce.Ref {
	return map[string]hookonce.Ref{
		"no source":             {Source: "", Key: "evt_1"},
		"NUL in the key":        {Source: "billing", Key: "evt\x00_1"},
		"NUL in the source":     {Source: "bill\x00ing", Key: "evt_1"},
		"key not UTF-8":         {Source: "billing", Key: "evt_\xff"},
		"source not UTF-8":      {Source: "billing\xc3", Key: "evt_1"},
		"key of 256 bytes":      {Source: "billing", Key: strings.Repeat("k", hookonce.MaxKeyLen+1)},
		"source of 256 bytes":   {Source: strings.Repeat("s", hookonce.MaxKeyLen+1), Key: "evt_1"},
		"line break in the key": {Source: "billing", Key: "evt\n1"},
		"bad source, no key":    {Source: "bill\x00ing", Key: ""},
	}
}

// racers is how many workers compete, from how many stores.
const racers, stores = 12, 3

// shortWait is a bounded wait that a case sits through.
const shortWait = 50 * time.Millisecond

func event(i int) hookonce.ClaimRequest { return request(fmt.Sprint("evt_", i)) }

// rounds is how often a race is run; one of its two endings is the interesting one.
const rounds = 10

func count(answers []bool) (n int) {
	for _, yes := range answers {
		if yes {
			n++
		}
	}
	return n
}

// guards returns the store as one that has guards.
func (f *txFixture[Tx]) guards(t testing.TB) hookonce.Guards[Tx] {
	t.Helper()
	g, ok := f.TxStore.(hookonce.Guards[Tx])
	if !ok {
		t.Fatalf("%T is no hookonce.Guards", f.TxStore)
	}
	return g
}

// awkwardNames are different names that a store could take for one another.
func awkwardNames() []string {
	return []string{"a", "A", "a ", " a", "ä", "a\u0308", "ss", "ß", "1", "01", "a%", "a_", "[a]", "'", "\\", "\U0001F512",
		strings.Repeat("n", hookonce.MaxKeyLen), strings.Repeat("n", hookonce.MaxKeyLen-1)}
}

// tick is the rank of a time, given in seconds.
func tick(seconds int64) hookonce.Rank { return hookonce.Timestamp(time.Unix(seconds, 0)) }

// outbox returns the store as one that has an outbox.
func (f *txFixture[Tx]) outbox(t testing.TB) hookonce.Outbox[Tx] {
	t.Helper()
	return outboxOf(t, f.TxStore)
}

// everyState are the states that an effect can be in.
var everyState = [...]hookonce.State{
	hookonce.StatePending, hookonce.StateProcessing, hookonce.StateFailed, hookonce.StateDead, hookonce.StateDone,
}

var errDeclined = errors.New("card declined")

func declined(context.CancelFunc) error { return errDeclined }

// before asks for claims of events that were done before the given time.
func before(t time.Time, limit int) hookonce.PurgeRequest {
	return hookonce.PurgeRequest{Before: t, Limit: limit}
}

// finish claims and completes a key.
func finish(t testing.TB, s hookonce.Store, key string) hookonce.Ref {
	t.Helper()
	c := claim(t, s, request(key), hookonce.Acquired)
	ok(t, s.Complete(t.Context(), c))
	return c.Ref
}

// oldEffects asks for effects that were done before the given time.
func oldEffects(t time.Time, limit int) hookonce.PurgeRequest {
	return hookonce.PurgeRequest{Kind: hookonce.PurgeEffects, Before: t, Limit: limit}
}

// answered claims the key and completes it with a response of that text.
func answered(t testing.TB, s hookonce.Store, key, text string) hookonce.Claim {
	t.Helper()
	c := claim(t, s, request(key), hookonce.Acquired)
	ok(t, keeps(t, s).CompleteWith(t.Context(), c, response(text)))
	return c
}

// run is Within with a handler that has the effect named like the key and then returns err.
func (f *txFixture[Tx]) run(ctx context.Context, req hookonce.ClaimRequest, err error) (hookonce.Claim, error) {
	return f.TxStore.Within(ctx, req, func(tx Tx, _ hookonce.Claim) error {
		return errors.Join(f.db.Effect(ctx, tx, req.Key), err)
	})
}

// runs runs req, whose handler does not fail, and checks the verdict.
func (f *txFixture[Tx]) runs(t testing.TB, req hookonce.ClaimRequest, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := f.run(t.Context(), req, nil)
	ok(t, err)
	verdict(t, c, want)
	return c
}

// recovered runs f and returns what it panicked with.
func recovered(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// idle is Within where the handler must not run, unless handlers run ahead.
func (f *txFixture[Tx]) idle(t testing.TB, s hookonce.TxStore[Tx], req hookonce.ClaimRequest, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := s.Within(t.Context(), req, func(Tx, hookonce.Claim) error {
		if !f.ahead {
			t.Errorf("the handler ran")
		}
		return nil
	})
	refuses(t, err, want.Err())
	verdict(t, c, want)
	return c
}

// ended returns a context that has ended.
func ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// handler does steps, until one fails, and then ends with outcome. It writes down the claim that it got and
// what it was told.
type handler struct {
	steps   []step
	outcome error
	claim   hookonce.Claim
	told    []string
}

// outbox is an outbox but for its transactions.
type outbox interface {
	hookonce.EffectQueue
	hookonce.EffectAdmin
}

func outboxOf[Tx any](t testing.TB, s hookonce.TxStore[Tx]) hookonce.Outbox[Tx] {
	t.Helper()
	o, ok := s.(hookonce.Outbox[Tx])
	if !ok {
		t.Fatalf("%T is no hookonce.Outbox", s)
	}
	return o
}

// response is one that text tells apart from others.
func response(text string) hookonce.Response {
	return hookonce.Response{
		Status: http.StatusCreated,
		Header: http.Header{"Content-Type": {"text/plain"}, "Location": {"/charges/" + text}},
		Body:   []byte(text),
	}
}

// keeps returns s as a store that keeps responses.
func keeps(t testing.TB, s hookonce.Store) hookonce.ResponseStore {
	t.Helper()
	if f, isFixture := s.(interface{ inner() hookonce.Store }); isFixture {
		s = f.inner()
	}
	r, ok := s.(hookonce.ResponseStore)
	if !ok {
		t.Fatalf("%T is no hookonce.ResponseStore", s)
	}
	return r
}
