package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

var kills = flag.Int("kills", 3, "how often the tests that kill the gateway do so")

const killSecret = "secret-of-orders"

// TestKillUnderLoad kills the gateway as kill -9 does, at random moments under load, and starts it
// again. No acknowledged event may be lost, and none may come under two keys, for then the shop's
// ledger, which is keyed by Idempotency-Key, would hold it twice.
//
// The usual run kills 3 times; 20 times: go test ./cmd/hookonce/internal/endtoend -run Kill -kills 20
func TestKillUnderLoad(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killUnderLoad(t, "sqlite:hookonce.db") })
	t.Run("postgres", func(t *testing.T) { killUnderLoad(t, pgtest.DSN(t)) })
}

func killUnderLoad(t *testing.T, store string) {
	shop := newLedger(t)
	dir := t.TempDir()
	serve := []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", store,
		"--source", "orders", "--provider", "hmac", "--secret", killSecret, "--to", shop.URL,
		"--delivery-backoff", "50ms", "--delivery-lease", "3s"}
	var acknowledged []string
	for round := range *kills {
		p := mustLaunch(t, dir, serve...)
		acknowledged = append(acknowledged, flood(t, p, fmt.Sprintf("round%d", round), p.kill)...)
	}
	p := mustLaunch(t, dir, serve...)
	t.Logf("%d events were acknowledged in %d rounds", len(acknowledged), *kills)
	shop.await(t, acknowledged)
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Errorf("the last stop: %v", err)
	}
	shop.check(t)
}

// mustLaunch launches a gateway that ends with the test at the latest.
func mustLaunch(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p, err := launch(dir, os.Environ(), args...)
	if err != nil {
		t.Fatal(err)
	}
	p.endWith(t)
	return p
}

// enough is how many events are acknowledged under load before anything happens to the gateway, however slow the machine is.
const enough = 50

// flood posts events from several senders until the gateway is gone, and returns the ids that it acknowledged. It calls end, which
// ends the gateway, at a random moment after enough of them.
func flood(t *testing.T, p *process, prefix string, end func() error) []string {
	t.Helper()
	signer := provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var acknowledged []string
	ended := make(chan error, 1)
	deadline := time.Now().Add(2 * patience)
	var senders sync.WaitGroup
	for worker := range 16 {
		senders.Go(func() {
			for n := 0; time.Now().Before(deadline); n++ {
				id := fmt.Sprintf("%s-%d-%d", prefix, worker, n)
				status, err := postOrder(client, signer, p.addr, id)
				if err != nil {
					return
				}
				if status/100 != 2 {
					<-time.After(5 * time.Millisecond) // who does not wait at all takes the machine from the gateway
					continue
				}
				mu.Lock()
				if acknowledged = append(acknowledged, id); len(acknowledged) == enough {
					time.AfterFunc(rand.N(800*time.Millisecond), func() { ended <- end() })
				}
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	if len(acknowledged) < enough {
		t.Fatalf("%d events were acknowledged, and then none\n%s", len(acknowledged), p.log)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end under load: %v", err)
	}
	return acknowledged
}

func postOrder(client *http.Client, signer *spec.Provider, addr, id string) (status int, err error) {
	return postBody(client, signer, addr, fmt.Appendf(nil, `{"id":%q,"type":"order.paid"}`, id))
}

// postBody signs a body for the source orders and posts it.
func postBody(client *http.Client, signer *spec.Provider, addr string, body []byte) (status int, err error) {
	return postTo(client, signer, "http://"+addr+"/in/orders", body)
}

// postTo signs a body and posts it.
func postTo(client *http.Client, signer *spec.Provider, address string, body []byte) (status int, err error) {
	signed := &hookonce.Request{Method: http.MethodPost, Now: time.Now(), Body: body}
	if err := signer.Sign(signed); err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(signed.Body))
	if err != nil {
		return 0, err
	}
	req.Header = signed.Header
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// ledger is a shop that books each Idempotency-Key once.
type ledger struct {
	*httptest.Server
	mu     sync.Mutex
	booked map[string]string // the order by Idempotency-Key
	orders map[string]int    // how often each order was booked
	more   chan struct{}     // closed and replaced when something was booked
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{booked: map[string]string{}, orders: map[string]int{}, more: make(chan struct{})}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var order struct{ ID string }
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || key == "" {
		http.Error(w, "no order or no key", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, seen := l.booked[key]; seen {
		return
	}
	l.booked[key] = order.ID
	l.orders[order.ID]++
	close(l.more)
	l.more = make(chan struct{})
}

// await waits until all the orders are booked.
func (l *ledger) await(t *testing.T, orders []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		l.mu.Lock()
		missing, more := 0, l.more
		for _, id := range orders {
			if l.orders[id] == 0 {
				missing++
			}
		}
		l.mu.Unlock()
		if missing == 0 {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%d of %d acknowledged orders were lost", missing, len(orders))
		}
	}
}

// check fails the test if an order was booked twice.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.orders {
		if n != 1 {
			t.Errorf("order %s was booked %d times", id, n)
		}
	}
}

// TestTermUnderLoad: SIGTERM loses nothing either, ends with status 0, and within its time.
func TestTermUnderLoad(t *testing.T) {
	shop := newLedger(t)
	dir := t.TempDir()
	serve := []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--source", "orders", "--provider", "hmac", "--secret", killSecret, "--to", shop.URL}
	p := mustLaunch(t, dir, serve...)
	acknowledged := flood(t, p, "term", func() error { return p.end(syscall.SIGTERM) })
	p = mustLaunch(t, dir, serve...)
	shop.await(t, acknowledged)
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	shop.check(t)
}

// TestSecondSignalEndsAtOnce: whoever signals again does not want to wait for a destination that
// hangs. What follows the first signal within SameSignal belongs to it, so this goes on signalling.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	p := mustLaunch(t, t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--source", "orders", "--provider", "hmac", "--secret", killSecret, "--to", hanging.URL, "--shutdown-timeout", "1h", "--delivery-timeout", "1h")
	signer := provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}})
	if status, err := postOrder(http.DefaultClient, signer, p.addr, "a"); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	http.DefaultClient.CloseIdleConnections()
	<-arrived
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "gateway: stopping")
	ticks := time.NewTicker(gateway.SameSignal)
	defer ticks.Stop()
	for running := true; running; {
		select {
		case <-ticks.C: // an earlier one would be the first signal again
			_ = p.signal(syscall.SIGTERM) // it may have ended meanwhile
		case <-p.ended:
			running = false
		}
	}
	if p.wait() == nil {
		t.Error("exit status 0, although work was cut off")
	}
}

func TestSignalSentTwiceIsOneSignal(t *testing.T) {
	t.Parallel()
	p := mustLaunch(t, t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.signal(syscall.SIGTERM) // an idle gateway may have ended already
	if err := p.wait(); err != nil {
		t.Errorf("the second of two signals at once cut the end short: %v\n%s", err, p.log)
	}
}

// awaitLog waits until the process has logged the text.
func (p *process) awaitLog(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(look) {
		if strings.Contains(p.log.String(), text) {
			return
		}
	}
	t.Fatalf("%q was not logged:\n%s", text, p.log)
}
