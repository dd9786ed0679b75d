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

// accounts are both ends of a run: what was acknowledged to the sender, and what came of it.
type accounts struct {
	t         *testing.T
	n         int
	acked     *bits
	delivered *bits
	repeats   atomic.Int64 // deliveries of what was delivered before
	strange   atomic.Int64 // deliveries under a key that is not the event's
	copies    atomic.Int64 // sent after the acknowledgement
	again     atomic.Int64 // that were taken for new
	recalled  atomic.Int64 // of them, those that were sent in the end, to gateways with nothing in their memory
	tries     atomic.Int64 // that were not acknowledged

	recovering atomic.Pointer[recovery]
	mu         sync.Mutex
	recovered  traffic.Histogram
	own        traffic.Histogram        // of recovered, what came after the database committed again
	everywhere traffic.Histogram        // until all gateways acknowledged again, where that was before the next fault
	worst      map[string]time.Duration // of recovered, by fault

	counting, claiming *httptest.Server
	ill                atomic.Bool // the destinations answer 500
	db                 *sql.DB     // of the application
}

// recovery is a fault after which somebody has to acknowledge again.
type recovery struct {
	fault   string
	since   time.Time // its beginning, or its end if it lasts
	over    time.Time // its end: what is acknowledged for a request that began later counts
	gateway int       // whose acknowledgement counts; negative: anybody's

	// In nanoseconds of Unix time; 0: not yet.
	commits  atomic.Int64   // when the database itself committed again
	gateways []atomic.Int64 // when each acknowledged again

	once         sync.Once
	acknowledged time.Time // set before done is closed
	done         chan struct{}
}

// everywhere returns how long it took until the last gateway acknowledged again, and whether all have.
func (r *recovery) everywhere() (took time.Duration, all bool) {
	all = true
	for i := range r.gateways {
		at := r.gateways[i].Load()
		if at == 0 {
			all = false
		} else {
			took = max(took, time.Unix(0, at).Sub(r.since))
		}
	}
	return took, all
}

// took returns how long the recovery took, and how much of it came after the database itself committed again.
func (r *recovery) took() (all, own time.Duration) {
	all = r.acknowledged.Sub(r.since)
	if at := r.commits.Load(); at != 0 {
		own = max(0, r.acknowledged.Sub(time.Unix(0, at)))
	}
	return all, own
}

// newAccounts opens both destinations.
func newAccounts(t *testing.T, n int) *accounts {
	a := &accounts{t: t, n: n, acked: newBits(n), delivered: newBits(n), worst: map[string]time.Duration{}}
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

// sick answers 500 while the destinations are ill.
func (a *accounts) sick(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// count is the destination that claims nothing.
func (a *accounts) count(w http.ResponseWriter, r *http.Request) {
	if a.ill.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	n, ok := eventOf(string(body))
	switch {
	case err != nil || !ok || n >= a.n:
		w.WriteHeader(http.StatusBadRequest)
		return
	case r.Header.Get("Idempotency-Key") != fmt.Sprintf("orders:evt_%d", n):
		a.strange.Add(1)
	}
	if !a.delivered.set(n) {
		a.repeats.Add(1)
	}
}

// effect is what the application does once.
func (a *accounts) effect(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
	n, ok := eventOf(string(ev.Body))
	if !ok || n >= a.n {
		return hookonce.Permanent(fmt.Errorf("no event of ours: %s", ev.Key))
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO effects (n) VALUES (?)`, n); err != nil {
		return err
	}
	return nil
}

// eventOf reads the number of an event from its body.
func eventOf(body string) (n int, ok bool) {
	_, rest, found := strings.Cut(body, `"evt_`)
	digits, _, ended := strings.Cut(rest, `"`)
	n, err := strconv.Atoi(digits)
	return n, found && ended && err == nil && n >= 0
}

// source is where event n is sent.
func source(n int) string {
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

// recall sends much of what was acknowledged once more, when all of it was delivered and the gateways have begun anew: the store
// alone can say then that it is known, after all that was done to it.
func (a *accounts) recall(doors []string) {
	step := a.n/maxRecalled | 1 // odd, so that all sources have their part
	var next atomic.Int64
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			s := a.sender(doors, nil)
			defer s.client.CloseIdleConnections()
			for n := 0; n < a.n; {
				if n = int(next.Add(1)-1) * step; n < a.n && a.acked.has(n) {
					s.remind(n)
				}
			}
		})
	}
	senders.Wait()
}

// remind sends one event that was acknowledged until it is acknowledged again.
func (a *insistent) remind(n int) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if a.copy(n%len(a.doors), n, event(n)) {
			a.recalled.Add(1)
			return
		}
		a.tries.Add(1)
	}
	a.t.Errorf("in the end nobody answers a copy of event %d", n)
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
		if n >= a.n || !s.insist(n) {
			return
		}
	}
}

// insist posts one event until it is acknowledged.
func (a *insistent) insist(n int) bool {
	body := event(n)
	for try := 0; ; try++ {
		i := (n + try) % len(a.doors)
		began := time.Now()
		status, _, err := a.post(i, n, body)
		if err == nil && status/100 == 2 {
			a.acknowledged(n, i, began)
			if n%16 == 3 {
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

// acknowledged books an acknowledgement, and what it ends.
func (a *accounts) acknowledged(n, gateway int, began time.Time) {
	a.acked.set(n)
	r := a.recovering.Load()
	if r == nil || began.Before(r.over) {
		return
	}
	r.gateways[gateway].CompareAndSwap(0, time.Now().UnixNano())
	if r.gateway < 0 || r.gateway == gateway {
		r.once.Do(func() { a.recoveredFrom(r) })
	}
}

// recoveredFrom books a recovery.
func (a *accounts) recoveredFrom(r *recovery) {
	r.acknowledged = time.Now()
	took, own := r.took()
	a.mu.Lock()
	a.recovered.Record(took)
	a.own.Record(own)
	a.worst[r.fault] = max(a.worst[r.fault], took)
	a.mu.Unlock()
	close(r.done)
}

// copy sends an event that was acknowledged once more, and reports whether it is again: whoever takes it for new would deliver it
// twice.
func (a *insistent) copy(door, n int, body []byte) bool {
	status, word, err := a.post(door, n, body)
	if err != nil || status/100 != 2 {
		return false
	}
	a.copies.Add(1)
	if word == "accepted" {
		a.again.Add(1)
	}
	return true
}

func (a *insistent) post(door, n int, body []byte) (status int, word string, err error) {
	signed := &hookonce.Request{Method: http.MethodPost, Now: time.Now(), Body: body}
	if err := a.signer.Sign(signed); err != nil {
		return 0, "", err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+a.doors[door]+"/in/"+source(n), bytes.NewReader(signed.Body))
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
		if now := a.delivered.count.Load() + a.repeats.Load(); now != last {
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
