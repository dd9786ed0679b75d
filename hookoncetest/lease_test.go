package hookoncetest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/redisstore"
)

// bank is a system outside that has each effect once that comes under one Idempotency-Key, if it is told one.
type bank struct {
	*httptest.Server
	mu      sync.Mutex
	calls   int
	seen    map[string]bool // by key
	effects map[string]int  // by event
}

func openBank(t *testing.T) *bank {
	b := &bank{seen: map[string]bool{}, effects: map[string]int{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls++; key == "" || !b.seen[key] {
		b.effects[string(event)]++
	}
	b.seen[key] = true
}

func (b *bank) count(event string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.effects[event]
}

// charge calls the bank through a client.
func (b *bank) charge(ctx context.Context, client *http.Client, event string) error {
	if err := hookoncetest.Fail(ctx); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL, strings.NewReader(event))
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// forgetful is a store that loses each fourth record of what is done, as if the process had died before it
// and its lease had run out.
type forgetful struct {
	hookonce.Store
	records *atomic.Int64
}

func (f forgetful) Complete(ctx context.Context, c hookonce.Claim) error {
	if f.records.Add(1)%4 != 0 {
		return f.Store.Complete(ctx, c)
	}
	if err := f.Fail(ctx, c, hookonce.Failure{}); err != nil {
		return err
	}
	return hookonce.ErrNotFound
}

// leaseStores opens a store twice, as two processes do.
var leaseStores = map[string]func(t *testing.T) func() hookonce.Store{
	"memory": func(*testing.T) func() hookonce.Store {
		store := memstore.New()
		return func() hookonce.Store { return store.With() }
	},
	"Redis": func(t *testing.T) func() hookonce.Store {
		return func() hookonce.Store {
			client := redis.NewClient(&redis.Options{Addr: redistest.Addr(t)})
			t.Cleanup(func() { client.Close() })
			return redisstore.New(client, redisstore.WithPrefix("storm"))
		}
	},
	"Postgres": func(t *testing.T) func() hookonce.Store {
		pool, _ := openPostgres(t)
		pgtest.Migrate(t, pool, "")
		return func() hookonce.Store { return pgstore.New(pool) }
	},
}

// TestStormUnderALease: nothing is lost, and what is done again because its record was lost is sent under the
// same key.
func TestStormUnderALease(t *testing.T) {
	for name, open := range leaseStores {
		t.Run(name, func(t *testing.T) {
			b, records, process := openBank(t), new(atomic.Int64), open(t)
			client := &http.Client{Transport: hookonce.Transport(http.DefaultTransport)}
			var handlers []http.Handler
			for range 2 {
				handlers = append(handlers, hookonce.WebhookLease(forgetful{process(), records}, "stripe", stripe, func(ctx context.Context, ev *hookonce.Event) error {
					return b.charge(ctx, client, ev.Key)
				}, quiet))
			}
			storm := hookoncetest.Storm(t, inTurn(handlers...), stripe)
			storm.Once(t, b.count)
			if b.calls == len(b.effects) {
				t.Errorf("%d calls for %d effects: no record was lost", b.calls, len(b.effects))
			}
		})
	}
}

// TestStormCatchesLeasesWithoutKeys: what is lost between an effect and its record shows where calls carry no key.
func TestStormCatchesLeasesWithoutKeys(t *testing.T) {
	b := openBank(t)
	got := watch(t, func(tb testing.TB) {
		h := hookonce.WebhookLease(forgetful{memstore.New(), new(atomic.Int64)}, "stripe", stripe, func(ctx context.Context, ev *hookonce.Event) error {
			return b.charge(ctx, http.DefaultClient, ev.Key)
		}, quiet)
		hookoncetest.Storm(tb, h, stripe).Once(tb, b.count)
	})
	if want := "happened 2 times"; !strings.Contains(got, want) {
		t.Errorf("the test does not say %q, but:\n%s", want, got)
	}
}
