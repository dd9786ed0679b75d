package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/pgtest"
	"github.com/hookonce/hookonce/provider"
)

const orderedFile = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: %s
delivery: {lease: 3s, backoff: 50ms}
destinations:
  - {name: ledger, url: %s, order: by_resource}
sources:
  - name: orders
    provider: custom
    secrets: [` + killSecret + `]
    routes: [{to: ledger}]
    spec:
      verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
      event: {key: [["json:$.id"]], resource: ["json:$.object"]}
      order: {by: "json:$.version"}
`

// TestKillOneOfThree kills one of three gateways on one Postgres as kill -9 does, again and again under
// load. Nothing that was acknowledged is lost, and the events of an object stay in their order: an
// attempt whose outcome died with its gateway is made again, under its key, before anything younger.
func TestKillOneOfThree(t *testing.T) {
	shop := newObjects(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "ordered.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, orderedFile, pgtest.DSN(t), shop.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	var addresses [3]atomic.Pointer[string]
	var gateways [3]*process
	launch := func(i int) {
		gateways[i] = mustLaunch(t, dir, "serve", "--config", file)
		addresses[i].Store(&gateways[i].addr)
	}
	for i := range gateways {
		launch(i)
	}
	stop := make(chan struct{})
	var senders sync.WaitGroup
	var sent [8]int // versions that were acknowledged, by object
	for object := range sent {
		senders.Go(func() { sent[object] = sendVersions(t, object, &addresses, stop) })
	}
	for kill := range *kills {
		shop.awaitMore(t, 50)
		gateways[kill%3].signal(syscall.SIGKILL)
		gateways[kill%3].wait() // it was killed, and says so
		shop.awaitMore(t, 50)   // from the others
		launch(kill % 3)
	}
	shop.awaitMore(t, 50)
	close(stop)
	senders.Wait()
	for object, versions := range sent {
		shop.awaitObject(t, fmt.Sprint(object), versions)
	}
	for _, g := range gateways {
		if err := g.end(syscall.SIGTERM); err != nil {
			t.Errorf("the last stop: %v", err)
		}
	}
	shop.check(t)
}

// sendVersions sends the versions of an object one after the other, each to the next gateway until one
// has acknowledged it, and returns how many there were.
func sendVersions(t *testing.T, object int, addresses *[3]atomic.Pointer[string], stop <-chan struct{}) int {
	signer := provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}})
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	for version := 1; ; version++ {
		body := fmt.Appendf(nil, `{"id":"%d/%d","object":"%d","version":%d}`, object, version, object, version)
		for try := version; ; try++ {
			status, err := postBody(client, signer, *addresses[try%3].Load(), body)
			if err == nil && status == http.StatusOK {
				break
			}
			if t.Context().Err() != nil {
				return version - 1
			}
		}
		select {
		case <-stop:
			return version
		default:
		}
	}
}

// objects is a shop that watches the versions of its objects.
type objects struct {
	*httptest.Server
	mu    sync.Mutex
	last  map[string]int             // the newest version, by object
	keys  map[string]map[string]bool // Idempotency-Key values by id
	total int
	again int // deliveries that repeat one
	fault error
	more  chan struct{} // closed and replaced at every delivery
}

func newObjects(t *testing.T) *objects {
	o := &objects{last: map[string]int{}, keys: map[string]map[string]bool{}, more: make(chan struct{})}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ev struct {
		ID, Object string
		Version    int
	}
	if err := json.NewDecoder(r.Body).Decode(&ev); err != nil {
		http.Error(w, "no event", http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch last := o.last[ev.Object]; ev.Version {
	case last + 1:
		o.last[ev.Object]++
	case last:
		o.again++
	default:
		o.fault = fmt.Errorf("object %s: version %d comes after %d", ev.Object, ev.Version, last)
	}
	if o.keys[ev.ID] == nil {
		o.keys[ev.ID] = map[string]bool{}
	}
	o.keys[ev.ID][r.Header.Get("Idempotency-Key")] = true
	o.total++
	close(o.more)
	o.more = make(chan struct{})
}

// awaitMore waits for n more deliveries.
func (o *objects) awaitMore(t *testing.T, n int) {
	t.Helper()
	o.mu.Lock()
	target := o.total + n
	o.mu.Unlock()
	o.await(t, func() bool { return o.total >= target })
}

// awaitObject waits until an object has come to a version.
func (o *objects) awaitObject(t *testing.T, object string, version int) {
	t.Helper()
	o.await(t, func() bool { return o.last[object] >= version })
}

// await waits until done, which is called under the lock.
func (o *objects) await(t *testing.T, done func() bool) {
	t.Helper()
	for timeout := time.After(patience); ; {
		o.mu.Lock()
		ok, more := done(), o.more
		o.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-timeout:
			o.mu.Lock()
			defer o.mu.Unlock()
			t.Fatalf("waited %v after %d deliveries; the objects are at %v (%v)", patience, o.total, o.last, o.fault)
		}
	}
}

// check fails the test if something was out of order, or came under two keys.
func (o *objects) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault != nil {
		t.Error(o.fault)
	}
	for id, keys := range o.keys {
		if len(keys) != 1 {
			t.Errorf("%s came under %d keys", id, len(keys))
		}
	}
	t.Logf("%d deliveries, %d of them again", o.total, o.again)
}
