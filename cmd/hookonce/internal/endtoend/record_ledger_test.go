package endtoend

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	bitops "math/bits"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // for the application

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/traffic"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// bits are one bit for each event, in the order in which they were made. It is safe for concurrent use.
type bits struct {
	words []atomic.Uint64
	count atomic.Int64
}

func newBits(n int) *bits { return &bits{words: make([]atomic.Uint64, n/64+1)} }

// set sets the bit of event n and reports whether it was clear.
func (b *bits) set(n int) bool {
	mask := uint64(1) << (n % 64)
	fresh := b.words[n/64].Or(mask)&mask == 0
	if fresh {
		b.count.Add(1)
	}
	return fresh
}

// has reports whether the bit of event n is set.
func (b *bits) has(n int) bool { return b.words[n/64].Load()&(1<<(n%64)) != 0 }

// missing returns the events that b has and the other has not.
func (b *bits) missing(other *bits) (events []int) {
	for w := range b.words {
		for rest := b.words[w].Load() &^ other.words[w].Load(); rest != 0; rest &= rest - 1 {
			events = append(events, w*64+bitops.TrailingZeros64(rest))
		}
	}
	return events
}

// claimedPart is the part of the events that go to an application which claims them: one of so many. The others go to a
// destination that only counts.
const claimedPart = 20

// rollCalls is how many events there are beside those of the load: what gateways are asked one by one in the end.
const rollCalls = 16

// accounts are both ends of a run: what was acknowledged to the sender, and what came of it.
type accounts struct {
	t           *testing.T
	alone       bool // nothing else keeps the machine busy: how long things take, leases too, is judged as well
	load        int  // how many events are sent under load
	n           int  // with those of the roll calls
	called      int  // of those, how many were sent
	acked       *bits
	delivered   *bits
	attempts    []atomic.Uint32 // the highest number of an attempt that came, of each event
	came        []atomic.Int64  // when the last one was answered, of each event, in nanoseconds of Unix time
	repeats     atomic.Int64    // deliveries of what was delivered before
	unexplained atomic.Int64    // of them, those for which no harm was the reason
	strange     atomic.Int64    // deliveries under a key that is not the event's, or with another body
	copies      atomic.Int64    // sent after the acknowledgement
	again       atomic.Int64    // that were taken for new
	recalled    atomic.Int64    // of them, those that were sent in the end, to gateways with nothing in their memory
	tries       atomic.Int64    // that were not acknowledged

	recovering atomic.Pointer[recovery]
	mu         sync.Mutex
	broken     []string // what else must not be, in words
	unrest     []*unrest
	recovered  traffic.Histogram
	everywhere traffic.Histogram        // until all gateways acknowledged again
	afterStore traffic.Histogram        // of everywhere, where the database was harmed: what came after it committed again
	late       time.Duration            // the longest that gateways took which had all that they need
	starts     traffic.Histogram        // of gateways that were killed
	worst      map[string]time.Duration // of recovered, by fault

	counting, claiming *httptest.Server
	ill                atomic.Bool // the destinations answer 500
	db                 *sql.DB     // of the application
}

// breach books that something is so that must not be.
func (a *accounts) breach(format string, values ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = append(a.broken, fmt.Sprintf(format, values...))
}

// unrest is a time in which an attempt may be made whose outcome nobody gets to know.
type unrest struct{ from, to time.Time }

// disturb begins one, and returns what ends it. Leases that began within it go on for a while.
func (a *accounts) disturb() (end func()) {
	u := &unrest{from: time.Now()}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unrest = append(a.unrest, u)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		u.to = time.Now().Add(recordLease)
	}
}

// calm reports whether nothing was harmed between two moments.
func (a *accounts) calm(from, to time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range a.unrest {
		if u.from.Before(to) && (u.to.IsZero() || u.to.After(from)) {
			return false
		}
	}
	return true
}

// recovery is a fault after which all gateways have to acknowledge again.
type recovery struct {
	fault   string
	since   time.Time // its beginning, or its end if it lasts
	over    time.Time // its end: what is acknowledged for a request that began later counts
	gateway int       // whose acknowledgement ends it for the sender; negative: anybody's
	store   bool      // the database was harmed

	// In nanoseconds of Unix time; 0: not yet.
	commits  atomic.Int64   // when the database itself committed again, if it was harmed
	gateways []atomic.Int64 // when each acknowledged again

	silent atomic.Int32 // gateways that have not acknowledged again
	done   chan struct{}
}

func newRecovery(fault string, since, over time.Time, gateway, gateways int, store bool) *recovery {
	r := &recovery{fault: fault, since: since, over: over, gateway: gateway, store: store,
		gateways: make([]atomic.Int64, gateways), done: make(chan struct{})}
	r.silent.Store(int32(gateways))
	return r
}

// waiting are the gateways that have not acknowledged again.
func (r *recovery) waiting() (gateways []int) {
	for i := range r.gateways {
		if r.gateways[i].Load() == 0 {
			gateways = append(gateways, i)
		}
	}
	return gateways
}

// took returns, of a recovery that is done, how long it took for the sender, how long until the last gateway acknowledged,
// and how much of that was the gateways' own: what came after everything that they need was there again.
func (r *recovery) took() (sender, everywhere, own time.Duration) {
	first, last := r.gateways[0].Load(), r.gateways[0].Load()
	for i := range r.gateways {
		at := r.gateways[i].Load()
		first, last = min(first, at), max(last, at)
	}
	if r.gateway >= 0 {
		first = r.gateways[r.gateway].Load()
	}
	there := r.over.UnixNano()
	if r.store {
		if there = r.commits.Load(); there == 0 {
			there = last // they were faster than whoever looked at the database
		}
	}
	return time.Unix(0, first).Sub(r.since), time.Unix(0, last).Sub(r.since), time.Duration(max(0, last-there))
}

// newAccounts opens both destinations.
func newAccounts(t *testing.T, load int) *accounts {
	n := load + rollCalls
	a := &accounts{t: t, alone: *recordFile != "", load: load, n: n, acked: newBits(n), delivered: newBits(n), attempts: make([]atomic.Uint32, n),
		came: make([]atomic.Int64, n), worst: map[string]time.Duration{}}
	db, err := sql.Open("sqlite", "file:"+t.TempDir()+"/app.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec(`CREATE TABLE effects (n integer NOT NULL)`); err != nil { // nothing but the claim keeps a copy out
		t.Fatal(err)
	}
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, "hookonce"); err != nil {
		t.Fatal(err)
	}
	store := sqlstore.New(db, sqlstore.SQLite)
	a.db = db
	a.counting = httptest.NewServer(http.HandlerFunc(a.count))
	a.claiming = httptest.NewServer(a.sick(hookonce.Webhook(store, "app", provider.Hookonce(killSecret), a.effect)))
	t.Cleanup(a.counting.Close)
	t.Cleanup(a.claiming.Close)
	return a
}

// sick answers 500 while the destinations are ill, and books what comes otherwise.
func (a *accounts) sick(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		a.arrives(r.Header, "claims")
		next.ServeHTTP(w, r)
	})
}

// arrives books an attempt that comes.
func (a *accounts) arrives(h http.Header, source string) {
	n, ok := numberOf(strings.TrimPrefix(h.Get("Idempotency-Key"), source+":"))
	if !ok || n >= a.n || sourceOf(n) != source {
		a.strange.Add(1)
		return
	}
	attempt, err := strconv.ParseUint(h.Get("Hookonce-Attempt"), 10, 32)
	if err != nil || attempt == 0 {
		a.strange.Add(1)
		return
	}
	for {
		highest := a.attempts[n].Load()
		if uint32(attempt) <= highest || a.attempts[n].CompareAndSwap(highest, uint32(attempt)) {
			return
		}
	}
}

// count is the destination that claims nothing.
func (a *accounts) count(w http.ResponseWriter, r *http.Request) {
	if a.ill.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	n, ok := eventOf(string(body))
	if err != nil || !ok || n >= a.n {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.arrives(r.Header, "orders")
	if r.Header.Get("Idempotency-Key") != fmt.Sprintf("orders:evt_%d", n) || !bytes.Equal(body, event(n)) {
		a.strange.Add(1)
	}
	now := time.Now()
	before := a.came[n].Swap(now.UnixNano())
	if !a.delivered.set(n) {
		a.repeats.Add(1)
		if a.calm(time.Unix(0, before), now) {
			a.unexplained.Add(1)
		}
	}
}

// effect is what the application does once.
func (a *accounts) effect(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
	n, ok := eventOf(string(ev.Body))
	if !ok || n >= a.n {
		return hookonce.Permanent(fmt.Errorf("no event of ours: %s", ev.Key))
	}
	if !bytes.Equal(ev.Body, event(n)) {
		a.strange.Add(1)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO effects (n) VALUES (?)`, n); err != nil {
		return err
	}
	return nil
}

// eventOf reads the number of an event from its body.
func eventOf(body string) (n int, ok bool) {
	_, rest, found := strings.Cut(body, `"id":"`)
	key, _, ended := strings.Cut(rest, `"`)
	n, ok = numberOf(key)
	return n, ok && found && ended
}

// numberOf reads the number of an event from its key.
func numberOf(key string) (n int, ok bool) {
	digits, found := strings.CutPrefix(key, "evt_")
	n, err := strconv.Atoi(digits)
	return n, found && err == nil && n >= 0
}

// sourceOf is where event n is sent.
func sourceOf(n int) string {
	if n%claimedPart == 0 {
		return "claims"
	}
	return "orders"
}

// insistent is one of those who post events, each until it is acknowledged, and some of them again after that.
type insistent struct {
	*accounts
	client *http.Client
	signer *spec.Provider
	doors  []string // where the gateways are reached
	stop   <-chan struct{}
}

func (a *accounts) sender(doors []string, stop <-chan struct{}) *insistent {
	return &insistent{a, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}, Timeout: 20 * time.Second},
		provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}}), doors, stop}
}

// maxRecalled is how many of the events of a run are sent again in its end, at most.
const maxRecalled = 20_000

// recallStep is how far apart those are: odd, so that all sources have their part.
func recallStep(load int) int { return load/maxRecalled | 1 }

// recall sends much of what was acknowledged once more, when all of it was delivered and the gateways have begun anew: the store
// alone can say then that it is known, after all that was done to it.
func (a *accounts) recall(doors []string) {
	step := recallStep(a.load)
	var next atomic.Int64
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			s := a.sender(doors, nil)
			defer s.client.CloseIdleConnections()
			for {
				i := int(next.Add(1) - 1)
				n := i * step
				if n >= a.load {
					return
				}
				if a.acked.has(n) {
					s.remind(i%len(doors), n)
				}
			}
		})
	}
	senders.Wait()
}

// remind sends one event that was acknowledged to a gateway, until it is acknowledged again.
func (a *insistent) remind(door, n int) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(look) {
		if a.copy(door, n, event(n)) {
			a.recalled.Add(1)
			return
		}
		a.tries.Add(1)
	}
	a.breach("in the end gateway %d does not answer a copy of event %d", door, n)
}

// rollCall has every gateway acknowledge an event that nobody else is asked about, and reports whether all do within that time.
// Copies would not do: a gateway knows them without its store.
func (a *accounts) rollCall(doors []string, within time.Duration) bool {
	stop := make(chan struct{})
	end := time.AfterFunc(within, func() { close(stop) })
	defer end.Stop()
	var silent atomic.Bool
	var calls sync.WaitGroup
	for i := range doors {
		n := a.load + a.called
		a.called++
		calls.Go(func() {
			s := a.sender(doors, stop)
			defer s.client.CloseIdleConnections()
			if !s.insist(n, func(int) int { return i }) {
				silent.Store(true)
				a.breach("gateway %d acknowledges nothing within %v of the load", i, within)
			}
		})
	}
	calls.Wait()
	return !silent.Load()
}

func event(n int) []byte {
	return fmt.Appendf(nil, `{"id":"evt_%d","type":"order.paid","amount":%d}`, n, n%1000)
}

// send posts events until there are none left, or stop is closed: what was not acknowledged then may be stored or not.
func (a *accounts) send(next *atomic.Int64, doors []string, stop <-chan struct{}) {
	s := a.sender(doors, stop)
	defer s.client.CloseIdleConnections()
	for {
		n := int(next.Add(1)) - 1
		if n >= a.load || !s.insist(n, func(try int) int { return (n + try) % len(doors) }) {
			return
		}
	}
}

// insist posts one event until it is acknowledged, each try to the gateway of its own.
func (a *insistent) insist(n int, door func(try int) int) bool {
	body := event(n)
	for try := 0; ; try++ {
		i := door(try)
		began := time.Now()
		status, word, err := a.post(i, n, body)
		if err == nil && status/100 == 2 {
			if word != "accepted" && word != "duplicate" {
				a.breach("gateway %d answered event %d with %d, %q", i, n, status, word)
			}
			a.acknowledged(n, i, began)
			if copied(n) {
				a.copy((i+1)%len(a.doors), n, body)
			}
			return true
		}
		a.tries.Add(1)
		select {
		case <-a.stop:
			return false
		case <-time.After(time.Duration(min(try+1, 10)) * 20 * time.Millisecond):
		}
	}
}

// copiedPart is the part of the events that are sent once more at once: one of so many. It has no factor in common with
// claimedPart, so that both sources have theirs.
const copiedPart = 17

func copied(n int) bool { return n%copiedPart == 3 }

// acknowledged books an acknowledgement, and what it ends.
func (a *accounts) acknowledged(n, gateway int, began time.Time) {
	a.acked.set(n)
	r := a.recovering.Load()
	if r == nil || began.Before(r.over) || !r.gateways[gateway].CompareAndSwap(0, time.Now().UnixNano()) {
		return
	}
	if r.silent.Add(-1) == 0 {
		a.recoveredFrom(r)
	}
}

// recoveredFrom books a recovery.
func (a *accounts) recoveredFrom(r *recovery) {
	took, everywhere, own := r.took()
	a.mu.Lock()
	a.recovered.Record(took)
	a.everywhere.Record(everywhere)
	if r.store {
		a.afterStore.Record(own)
	}
	a.late = max(a.late, own)
	a.worst[r.fault] = max(a.worst[r.fault], took)
	a.mu.Unlock()
	close(r.done)
}

// copy sends an event that was acknowledged once more, and reports whether it is again: whoever does not call it a duplicate would
// deliver it twice.
func (a *insistent) copy(door, n int, body []byte) bool {
	status, word, err := a.post(door, n, body)
	if err != nil || status/100 != 2 {
		return false
	}
	a.copies.Add(1)
	if word != "duplicate" {
		a.again.Add(1)
	}
	return true
}

func (a *insistent) post(door, n int, body []byte) (status int, word string, err error) {
	signed := &hookonce.Request{Method: http.MethodPost, Now: time.Now(), Body: body}
	if err := a.signer.Sign(signed); err != nil {
		return 0, "", err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+a.doors[door]+"/in/"+sourceOf(n), bytes.NewReader(signed.Body))
	if err != nil {
		return 0, "", err
	}
	req.Header = signed.Header
	res, err := a.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get("Hookonce-Status"), err
}

// awaitAll returns when all that was acknowledged has come, or nothing came for so long.
func (a *accounts) awaitAll(quiet time.Duration) {
	last, since := int64(-1), time.Now()
	for time.Since(since) < quiet {
		a.claims()
		if len(a.acked.missing(a.delivered)) == 0 {
			return
		}
		if now := a.delivered.count.Load(); now != last {
			last, since = now, time.Now()
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// claims books the effects of the application as deliveries, and returns how many there are, and how many too many.
func (a *accounts) claims() (effects, doubled int64) {
	rows, err := a.db.Query(`SELECT n, count(*) FROM effects GROUP BY n`)
	if err != nil {
		a.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		var times int64
		if err := rows.Scan(&n, &times); err != nil {
			a.t.Fatal(err)
		}
		a.delivered.set(n)
		effects++
		doubled += times - 1
	}
	if err := rows.Err(); err != nil {
		a.t.Fatal(err)
	}
	return effects, doubled
}
