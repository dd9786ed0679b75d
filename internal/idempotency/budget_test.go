package idempotency

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/memstore"
)

// counted is a service behind its gateway, with a clock and a store whose rows can be counted.
type counted struct {
	t       *testing.T
	store   *memstore.Store
	service Service
	handler http.Handler
	mu      sync.Mutex
	at      time.Time
	refs    map[hookonce.Ref]bool
	away    error // what every look ends with
}

// newCounted returns one whose service answers as the header X-Answer of a request says, and takes perHour keys.
func newCounted(t *testing.T, perHour int, scope ...string) *counted {
	c := &counted{t: t, store: memstore.New(), at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), refs: map[hookonce.Ref]bool{}}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.Header.Get("X-Answer"))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if n, _ := strconv.Atoi(r.Header.Get("X-Fields")); n > 0 {
			w.Header().Set("X-Long", strings.Repeat("x", n))
		}
		w.WriteHeader(status)
		size, _ := strconv.Atoi(r.Header.Get("X-Size"))
		io.WriteString(w, strings.Repeat("x", size))
	}))
	t.Cleanup(service.Close)
	to, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c.service = Service{
		Name: "charges", URL: to, Transport: transport, MaxBody: 1 << 20, MaxAnswer: 1 << 20,
		Timeout: 20 * time.Second, Lease: 10 * time.Second, NewKeys: perHour, Scope: scope,
	}
	c.start()
	return c
}

// start starts the gateway, which remembers nothing but what is in the store.
func (c *counted) start() {
	c.handler = New(c.service, Options{Store: watched{c.store, c}, Metrics: NewMetrics(prometheus.NewRegistry()), Logger: slog.New(slog.DiscardHandler), Now: c.now})
}

// watched remembers every key that was claimed.
type watched struct {
	*memstore.Store
	c *counted
}

func (w watched) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.refs[req.Ref] = true
	return w.Store.Claim(ctx, req)
}

func (w watched) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	if w.c.away != nil {
		return hookonce.Claim{}, w.c.away
	}
	return w.Store.Lookup(ctx, ref)
}

func (c *counted) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *counted) later(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// rows is how many claims there are.
func (c *counted) rows() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.refs {
		if _, err := c.store.Lookup(c.t.Context(), ref); err == nil {
			n++
		}
	}
	return n
}

// ask sends a request with a key, from an address, and returns the answer, whose body and header have so many bytes.
func (c *counted) ask(from, tenant, key, answer string, size ...int) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("10"))
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(from), 4711).String()
	r.Header.Set("X-Tenant", tenant)
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("X-Answer", answer)
	for i, n := range size {
		r.Header.Set([]string{"X-Size", "X-Fields"}[i], strconv.Itoa(n))
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

func (c *counted) want(w *httptest.ResponseRecorder, status int) {
	c.t.Helper()
	if w.Code != status {
		c.t.Errorf("answered %d %v %s, want %d", w.Code, w.Header(), w.Body, status)
	}
}

const stranger, neighbour, elsewhere = "192.0.2.1", "192.0.2.2", "2001:db8::1"

// A stranger with a new caller and a new key for each request leaves no more rows behind than the bound, whatever the
// service answers, is told when to come again, and does not even reach the service any more.
func TestStrangersLeaveBoundedRows(t *testing.T) {
	const perHour = 20
	for _, answer := range []string{"302", "307", "400", "404", "405", "413", "415", "422", "500", "503", "none"} {
		for name, scope := range map[string][]string{"a scope": {"header:X-Tenant"}, "no scope": nil} {
			t.Run(answer+" with "+name, func(t *testing.T) {
				c := newCounted(t, perHour, scope...)
				refused := 0
				for i := range 5 * perHour {
					w := c.ask(stranger, fmt.Sprint("t", i), fmt.Sprint("k", i), answer)
					if w.Code != http.StatusTooManyRequests {
						continue
					}
					refused++
					if !strings.Contains(w.Body.String(), "urn:hookonce:problem:too-many-keys") || w.Header().Get("Retry-After") != "180" {
						t.Fatalf("answered %v %s", w.Header(), w.Body)
					}
				}
				if n := c.rows(); n != perHour || refused != 4*perHour {
					t.Errorf("%d rows, and %d times told to come again", n, refused)
				}
				c.want(c.ask(neighbour, "acme", "k", "201"), 201)
				c.want(c.ask(elsewhere, "globex", "k", "201"), 201)
				c.later(time.Hour/perHour + time.Second)
				if w := c.ask(stranger, "later", "later", answer); w.Code == http.StatusTooManyRequests {
					t.Error("nothing came back with the time")
				}
				if w := c.ask(stranger, "later", "latest", answer); w.Code != http.StatusTooManyRequests {
					t.Error("more came back than the time that has passed is worth")
				}
			})
		}
	}
}

// One caller may come from everywhere, and one network has many addresses.
func TestStrangersWithManyAddresses(t *testing.T) {
	for name, from := range map[string]string{"one caller": "2001:db8:0:%x::1", "one network": "2001:db8::%x"} {
		c := newCounted(t, 20, "header:X-Tenant")
		for i := range 100 {
			tenant := "acme"
			if name == "one network" {
				tenant = fmt.Sprint(i)
			}
			c.ask(fmt.Sprintf(from, i), tenant, fmt.Sprint("k", i), "404")
		}
		if n := c.rows(); n != 20 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

// Who is turned away leaves nothing behind, and uses nothing up.
func TestTurnedAwayCostsNothing(t *testing.T) {
	for _, answer := range []string{"401", "403", "407", "425", "429"} {
		c := newCounted(t, 5, "header:X-Tenant")
		for i := range 50 {
			if w := c.ask(stranger, fmt.Sprint("t", i), fmt.Sprint("k", i), answer); strings.Contains(w.Body.String(), "too-many-keys") {
				t.Fatalf("%s: request %d was answered %s", answer, i, w.Body)
			}
		}
		if n := c.rows(); n != 0 {
			t.Errorf("%s: %d rows", answer, n)
		}
		c.want(c.ask(stranger, "acme", "k", "201"), 201)
	}
}

// A caller whom the service has let in comes through beside strangers at the same address, with old keys and new ones.
// Successes use nothing up.
func TestKnownCallersBesideStrangers(t *testing.T) {
	c := newCounted(t, 5, "header:X-Tenant")
	c.want(c.ask(stranger, "acme", "first", "201"), 201)
	for i := range 50 {
		c.ask(stranger, fmt.Sprint("t", i), fmt.Sprint("k", i), "404")
		c.want(c.ask(stranger, "acme", fmt.Sprint("k", i), "201"), 201)
	}
	w := c.ask(stranger, "acme", "first", "201")
	if w.Code != 201 || w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("a copy was answered %d %v", w.Code, w.Header())
	}
	c.want(c.ask(stranger, "newcomer", "k", "201"), 429) // nobody knows whose it is
	// What a known caller leaves behind is bounded, too.
	for i := range 50 {
		c.ask(stranger, "acme", fmt.Sprint("refused", i), "422")
	}
	if n := c.rows(); n != 1+50+5+5 {
		t.Errorf("%d rows", n)
	}
}

// Keys that are on record are answered and tried again, whatever else is used up.
func TestKnownKeysCostNothing(t *testing.T) {
	c := newCounted(t, 3, "header:X-Tenant")
	c.want(c.ask(stranger, "acme", "refused", "404"), 404)
	c.want(c.ask(stranger, "acme", "failed", "503"), 503)
	c.want(c.ask(stranger, "acme", "last", "404"), 404)
	c.want(c.ask(stranger, "acme", "more", "404"), 429)
	for range 10 {
		if w := c.ask(stranger, "acme", "refused", "404"); w.Code != 404 || w.Header().Get("Idempotency-Replayed") != "true" {
			t.Errorf("a copy was answered %d %s", w.Code, w.Body)
		}
		c.want(c.ask(stranger, "acme", "failed", "503"), 503)
	}
	for range 2 {
		c.want(c.ask(stranger, "acme", "failed", "201"), 201) // which gives its own row back, and one more
	}
	for i, want := range []int{404, 404, 429} {
		c.want(c.ask(stranger, "acme", fmt.Sprint("new", i), "404"), want)
	}
}

// When a service that was away is back, its callers are let in again soon: each success makes up for one failure.
func TestSuccessesMakeUpForFailures(t *testing.T) {
	c := newCounted(t, 50, "header:X-Tenant")
	c.want(c.ask(stranger, "acme", "first", "201"), 201)
	for i := range 100 {
		c.ask(stranger, "acme", fmt.Sprint("k", i), "503")
	}
	c.want(c.ask(stranger, "acme", "soon", "201"), 429)
	c.later(time.Hour/50 + time.Second)
	for i := range 100 {
		c.want(c.ask(stranger, "acme", fmt.Sprint("again", i), "201"), 201)
	}
	for i := range 40 {
		c.want(c.ask(stranger, "acme", fmt.Sprint("then", i), "503"), 503)
	}
}

// Many applications send whoever is not logged in to a page where they can: that lets nobody in. 303 is the answer to a
// form that was taken.
func TestRedirectsLetNobodyIn(t *testing.T) {
	c := newCounted(t, 5, "header:X-Tenant")
	for range 2 {
		c.want(c.ask(stranger, "mallory", "login", "302"), 302) // the second is a copy
	}
	for i := range 50 {
		c.ask(stranger, "mallory", fmt.Sprint("k", i), "302")
		c.ask(stranger, fmt.Sprint("t", i), "k", "404")
	}
	if n := c.rows(); n != 5 {
		t.Errorf("%d rows", n)
	}
	for i := range 50 {
		c.want(c.ask(neighbour, "acme", fmt.Sprint("form", i), "303"), 303)
	}
}

// Long answers cost as many rows as they take up.
func TestLongAnswersCostMore(t *testing.T) {
	for name, size := range map[string][]int{"body": {40 << 10}, "header": {0, 40 << 10}} {
		c := newCounted(t, 100, "header:X-Tenant")
		for i := range 50 {
			c.ask(stranger, fmt.Sprint("t", i), fmt.Sprint("k", i), "404", size...)
		}
		if n := c.rows(); n != 10 {
			t.Errorf("%d rows with 40 KiB of %s each", n, name)
		}
	}
}

// A later attempt pays for a long answer as the first would have, also when nothing is left to it.
func TestLongAnswersOfLaterAttempts(t *testing.T) {
	c := newCounted(t, 20, "header:X-Tenant")
	for i := range 10 {
		c.want(c.ask(stranger, "mallory", fmt.Sprint("k", i), "503"), 503)
	}
	for i := range 10 {
		c.want(c.ask(stranger, "mallory", fmt.Sprint("k", i), "404", 40<<10), 404) // ten rows each, and ten are left: the debt ends at an hour's worth
	}
	c.later(time.Hour)
	c.want(c.ask(stranger, "mallory", "new", "404"), 429)
	c.want(c.ask(stranger, "eve", "new", "404"), 429)
	c.later(4 * time.Minute)
	c.want(c.ask(stranger, "mallory", "new", "404"), 404)
}

// What counts is what the service answered, also where another answer is on record, because that one is too large.
func TestAnswersThatAreTooLarge(t *testing.T) {
	c := newCounted(t, 5, "header:X-Tenant")
	c.service.MaxAnswer = 1000
	c.start()
	for i := range 20 {
		c.want(c.ask(stranger, "acme", fmt.Sprint("k", i), "201", 2000), 500)
	}
	for i := range 20 {
		c.want(c.ask(stranger, "mallory", fmt.Sprint("k", i), "422", 2000), map[bool]int{true: 500, false: 429}[i < 5])
	}
	c.want(c.ask(stranger, "acme", "k", "201", 2000), 500) // whom the service has let in
}

// Whoever was let in before a restart is known by his first copy, and comes through beside strangers at the same address.
func TestKnownCallersAfterARestart(t *testing.T) {
	c := newCounted(t, 5, "header:X-Tenant")
	c.want(c.ask(stranger, "acme", "first", "201"), 201)
	c.start()
	c.want(c.ask(stranger, "acme", "first", "201"), 201)
	for i := range 50 {
		c.ask(stranger, fmt.Sprint("t", i), fmt.Sprint("k", i), "404")
	}
	c.want(c.ask(stranger, "acme", "second", "201"), 201)
}

// While nobody can say whether a key is on record whoever has used everything up is not let in with it.
func TestNobodyPassesWhileTheStoreIsAway(t *testing.T) {
	c := newCounted(t, 2)
	for i := range 2 {
		c.want(c.ask(stranger, "", fmt.Sprint("k", i), "404"), 404)
	}
	c.away = errors.New("the store is away")
	c.want(c.ask(stranger, "", "new", "201"), 503)
	if len(c.refs) != 2 {
		t.Errorf("claimed are %v", c.refs)
	}
	c.away = nil
	c.want(c.ask(stranger, "", "new", "201"), 429)
}

// As many callers and addresses as there are: what is known of them is bounded, and the next is served.
func TestCountsAreBounded(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b := newBudget(10, func() time.Time { return at })
	var address [16]byte
	for i := range 3 * maxCounted {
		address[1], address[2], address[3] = byte(i), byte(i>>8), byte(i>>16)
		v := &visit{from: connlimit.Network(netip.AddrFrom16(address)), by: caller(address)}
		v.by[15] = 1
		if wait := b.take(v); wait != 0 {
			t.Fatal(i, wait)
		}
		if i%2 == 0 {
			b.give(v, 2)
			b.admit(v)
		}
	}
	for name, n := range map[string]int{"addresses": b.addresses.Len(), "callers": b.letIn.Len(), "others": b.others.Len()} {
		if n > maxCounted {
			t.Errorf("%d %s are kept", n, name)
		}
	}
}

// Requests at once: no more rows than the bound, and no race.
func TestStrangersAtOnce(t *testing.T) {
	c := newCounted(t, 20, "header:X-Tenant")
	var strangers sync.WaitGroup
	for i := range 100 {
		strangers.Go(func() { c.ask(stranger, fmt.Sprint("t", i), fmt.Sprint("k", i), "404") })
	}
	strangers.Wait()
	if n := c.rows(); n != 20 {
		t.Errorf("%d rows", n)
	}
}
