package storetest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hookonce/hookonce"
)

// HistoryConfig says how to open a store whose history is checked.
type HistoryConfig struct {
	// Open makes a fresh, empty database and returns a function that opens stores on it, as
	// [Config].Open does, and one that makes the next write fail, as [Database].FailWrite does; nil if
	// there is none. Then answers get lost on the way from the store to its caller only.
	Open func(t testing.TB) (open func(Options) hookonce.Store, failWrite func(persisted bool))
	// NoPurge leaves purges out, for a store with a cache that may remember what is purged.
	NoPurge bool
}

// History returns the configuration that checks the histories of the same store.
func (cfg Config) History() HistoryConfig {
	return HistoryConfig{Open: func(t testing.TB) (func(Options) hookonce.Store, func(bool)) { return cfg.Open(t), nil }}
}

// History returns the configuration that checks the histories of the same store in lease mode, with the
// faults of FailWrite.
func (cfg TxConfig[Tx]) History() HistoryConfig {
	return HistoryConfig{Open: func(t testing.TB) (func(Options) hookonce.Store, func(bool)) {
		db := cfg.Open(t)
		return func(o Options) hookonce.Store { return db.Store(o) }, db.FailWrite
	}}
}

var (
	historySeed  = flag.Uint64("history.seed", 0, "seed of the histories of storetest.RunHistory; 0: a random one")
	historyCount = flag.Int("history.count", 20, "how many histories storetest.RunHistory checks")
)

// A history is what so many workers did to so many claims in so many steps each.
const (
	historyWorkers = 4
	historyClaims  = 2
	historySteps   = 25
)

// historyPatience bounds the search for an order that explains a history. It takes milliseconds.
const historyPatience = time.Minute

// RunHistory checks that a store is linearizable. Workers do random things to the same few claims at
// once: claim, take over, complete, fail, extend, look up, purge. Each has a store and a clock of its
// own, which only it moves, so that the clocks disagree. Some calls fail, before or after they took
// effect, and then what they did is not known. Afterwards there must be an order of all calls, each at
// some moment between its beginning and its end, in which one claim after the other changed by the
// rules, and every answer was true.
//
// A failure names the seed. The flags -history.seed and -history.count run the same calls again; how the
// workers' steps fall together is up to chance.
func RunHistory(t *testing.T, cfg HistoryConfig) {
	t.Run("history", func(t *testing.T) {
		seed := *historySeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		lab := newLab(t, cfg)
		for i := range *historyCount {
			h := lab.record(t, seed, i)
			if violation := h.check(); violation != "" {
				t.Fatalf("history %d of seed %d is not linearizable.\n%s\n%sTo run the same calls again: go test -run '%s' -history.seed=%d",
					i, seed, violation, h.draw(t), t.Name(), seed)
			}
		}
	})
}

// lab is a database with workers.
type lab struct {
	workers   []*worker
	failWrite func(persisted bool)
	noPurge   bool
}

func newLab(t testing.TB, cfg HistoryConfig) *lab {
	open, failWrite := cfg.Open(t)
	l := &lab{failWrite: failWrite, noPurge: cfg.NoPurge}
	for i := range historyWorkers {
		w := &worker{id: i, clock: NewClock(), lab: l}
		w.store = open(Options{Clock: w.clock.Now})
		l.workers = append(l.workers, w)
	}
	return l
}

// record lets the workers make a history, of claims that are not there yet, in a database without any
// that may be purged.
func (l *lab) record(t testing.TB, seed uint64, number int) *history {
	l.empty(t)
	// Workers also complete what they had forgotten, which may be somebody else's by then. A cache would
	// remember their digest.
	h := &history{start: time.Now(), forgets: number%2 == 1 && !l.noPurge}
	for i := range historyClaims {
		ref := hookonce.Ref{Source: fmt.Sprintf("history-%d", number), Key: fmt.Sprintf("evt_%d", i)}
		h.claims = append(h.claims, &track{ref: ref})
	}
	l.synchronise()
	var wg sync.WaitGroup
	for _, w := range l.workers {
		w.history, w.random = h, rand.New(rand.NewPCG(seed, uint64(number*historyWorkers+w.id)))
		wg.Go(func() {
			for range historySteps {
				w.step(t.Context())
			}
		})
	}
	wg.Wait()
	h.count(t, l.workers[0].store)
	return h
}

// empty deletes what may be purged. The last history may have left a fault, which strikes once.
func (l *lab) empty(t testing.TB) {
	l.synchronise()
	for _, w := range l.workers {
		w.clock.Advance(time.Microsecond) // what was changed last is old, too
	}
	purge := func() error {
		return errorOf(l.workers[0].store.Purge(t.Context(), before(l.workers[0].clock.Now(), math.MaxInt32)))
	}
	if purge() != nil {
		ok(t, purge())
	}
}

// synchronise sets all clocks to the latest of them.
func (l *lab) synchronise() {
	latest := time.Time{}
	for _, w := range l.workers {
		if now := w.clock.Now(); now.After(latest) {
			latest = now
		}
	}
	for _, w := range l.workers {
		w.clock.Advance(latest.Sub(w.clock.Now()))
	}
}

// history is what was called, and what was answered.
type history struct {
	start   time.Time
	claims  []*track
	forgets bool // failures may delete claims, which nobody counts

	mu       sync.Mutex
	purged   int
	unknown  bool // the outcome of a claim or of a purge is
	miscount string
}

// track is the history of one claim.
type track struct {
	ref  hookonce.Ref
	mu   sync.Mutex
	held []hookonce.Claim // that somebody won at some time; most are stale
	ops  []porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.start)) }

// check returns what is wrong with the history; empty if nothing is.
func (h *history) check() string {
	for _, k := range h.claims {
		switch porcupine.CheckOperationsTimeout(model(), k.ops, historyPatience) {
		case porcupine.Illegal:
			return k.String()
		case porcupine.Unknown:
			return fmt.Sprintf("no order was found in %v.\n%s", historyPatience, k)
		}
	}
	return h.miscount
}

// count checks that purges deleted as many claims as they said: those that were made and are gone. It
// cannot tell when outcomes are unknown.
func (h *history) count(t testing.TB, s hookonce.Store) {
	gone := 0
	for _, k := range h.claims {
		for _, op := range k.ops {
			if a := op.Output.(told); a.verdict == hookonce.Acquired && a.stored.token == 1 {
				gone++
			}
		}
		if _, err := s.Lookup(t.Context(), k.ref); err == nil {
			gone--
		} else {
			refuses(t, err, hookonce.ErrNotFound)
		}
	}
	if !h.unknown && !h.forgets && gone != h.purged {
		h.miscount = fmt.Sprintf("%d claims are gone, but purges counted %d.\n%s\n%s", gone, h.purged, h.claims[0], h.claims[1])
	}
}

// String lists what happened to the claim, by the time of the call.
func (k *track) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "What happened to %s:\n", k.ref)
	byCall := func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) }
	for _, op := range slices.SortedFunc(slices.Values(k.ops), byCall) {
		end := "never"
		if op.Return != unanswered {
			end = fmt.Sprint(time.Duration(op.Return))
		}
		fmt.Fprintf(&b, "  worker %d, %v to %s: %s\n", op.ClientId, time.Duration(op.Call), end, describe(op.Input, op.Output))
	}
	return b.String()
}

// draw writes pictures of the history and returns where they are. They stay if the test runs with
// -artifacts.
func (h *history) draw(t *testing.T) string {
	var b strings.Builder
	for i, k := range h.claims {
		path := filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.html", i))
		_, found := porcupine.CheckOperationsVerbose(model(), k.ops, historyPatience)
		ok(t, porcupine.VisualizePath(model(), found, path))
		fmt.Fprintf(&b, "A picture of it, which stays with -artifacts: %s\n", path)
	}
	return b.String()
}

// worker does random things, one after the other.
type worker struct {
	id      int
	lab     *lab
	store   hookonce.Store
	clock   *Clock
	history *history
	random  *rand.Rand
}

// chance reports true in so many of a hundred cases.
func (w *worker) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *worker) step(ctx context.Context) {
	if w.chance(50) {
		w.clock.Advance(time.Duration(w.random.IntN(1_500_000)) * time.Microsecond)
	}
	k := w.history.claims[w.random.IntN(historyClaims)]
	switch n := w.random.IntN(100); {
	case n < 35:
		w.claim(ctx, k)
	case n < 55:
		w.settle(ctx, k, call{kind: completing})
	case n < 70:
		w.settle(ctx, k, call{kind: failing, dead: w.chance(30), pin: w.chance(30), forget: w.history.forgets && w.chance(30)})
	case n < 80:
		w.settle(ctx, k, call{kind: extending, duration: time.Duration(1+w.random.IntN(2000)) * time.Millisecond})
	case n < 90 || w.lab.noPurge:
		w.do(ctx, call{kind: lookingUp}, k)
	default:
		w.purge(ctx)
	}
}

func (w *worker) claim(ctx context.Context, k *track) {
	in := call{
		kind: claiming, event: []string{"", "paid", "refunded"}[w.random.IntN(3)], digest: []string{"", "one", "two"}[w.random.IntN(3)],
		duration: time.Duration(1+w.random.IntN(1000)) * time.Millisecond,
		pin:      w.chance(30),
	}
	if w.chance(3) {
		in.duration = 0
	}
	if a, c := w.do(ctx, in, k); a.verdict == hookonce.Acquired {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.held = append(k.held, c)
	}
}

// settle records an outcome under one of the last claims that somebody won.
func (w *worker) settle(ctx context.Context, k *track, in call) {
	k.mu.Lock()
	in.claim = hookonce.Claim{Ref: k.ref, Token: 1}
	if n := len(k.held); n > 0 {
		in.claim = k.held[max(0, n-1-w.random.IntN(3))]
	}
	k.mu.Unlock()
	w.do(ctx, in, k)
}

// purge deletes what is old, which concerns every claim.
func (w *worker) purge(ctx context.Context) {
	w.do(ctx, call{
		kind: purging, before: micros(w.clock.Now()) - w.random.Int64N(1_000_000), limit: 1 + w.random.IntN(historyClaims),
	}, w.history.claims...)
}

// unanswered is the end of a call of which nobody knows whether it took effect, or still will.
const unanswered = math.MaxInt64

// do makes the call and records it for the claims that it concerns.
func (w *worker) do(ctx context.Context, in call, claims ...*track) (told, hookonce.Claim) {
	in.now = micros(w.clock.Now())
	begin := w.history.now()
	a, c := w.faulty(ctx, in, claims[0].ref)
	end := w.history.now()
	if a.fault == unknownOutcome {
		end = unanswered
	}
	w.history.note(in, a)
	for _, k := range claims {
		k.mu.Lock()
		k.ops = append(k.ops, porcupine.Operation{ClientId: w.id, Input: in, Call: begin, Output: a, Return: end})
		k.mu.Unlock()
	}
	return a, c
}

// note keeps what count needs.
func (h *history) note(in call, a told) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purged += a.purged
	h.unknown = h.unknown || a.fault == unknownOutcome && (in.kind == claiming || in.kind == purging)
}

// faulty makes the call, or loses it or its answer, or has the database lose a write.
func (w *worker) faulty(ctx context.Context, in call, ref hookonce.Ref) (told, hookonce.Claim) {
	switch n := w.random.IntN(100); {
	case n < 2:
		return told{fault: unknownOutcome}, hookonce.Claim{}
	case n < 4:
		_, _ = in.of(ctx, w.store, ref)
		return told{fault: unknownOutcome}, hookonce.Claim{}
	case n < 8 && w.lab.failWrite != nil:
		w.lab.failWrite(w.chance(50))
	}
	return in.of(ctx, w.store, ref)
}

// of makes the call of the store s.
func (in call) of(ctx context.Context, s hookonce.Store, ref hookonce.Ref) (a told, c hookonce.Claim) {
	var err error
	switch in.kind {
	case claiming:
		c, err = s.Claim(ctx, hookonce.ClaimRequest{Ref: ref, Type: in.event, Digest: []byte(in.digest), Lease: in.duration, Pin: in.pin})
		a.verdict, a.conflict = c.Verdict, c.Conflict
	case completing:
		err = s.Complete(ctx, in.claim)
	case failing:
		err = s.Fail(ctx, in.claim, in.failure())
	case extending:
		c, err = s.Extend(ctx, in.claim, in.duration)
	case lookingUp:
		c, err = s.Lookup(ctx, ref)
	case purging:
		a.purged, err = s.Purge(ctx, before(at(in.before), in.limit))
	}
	a.stored = recordOf(c)
	switch {
	case errors.Is(err, hookonce.ErrStale):
		return told{fault: staleToken}, c
	case errors.Is(err, hookonce.ErrNotFound):
		return told{fault: noClaim}, c
	case err != nil:
		return told{fault: unknownOutcome, purged: a.purged}, c
	}
	return a, c
}
