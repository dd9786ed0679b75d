package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/pgtest"
)

// TestIdempotencyKilled kills the gateway while the service works on a request: nobody knows then what came
// of it. Copies are told to come again until the lease ends; then one is forwarded, under the same key, and
// from then on its answer is the answer.
func TestIdempotencyKilled(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { idempotencyKilled(t, "sqlite:hookonce.db") })
	t.Run("postgres", func(t *testing.T) { idempotencyKilled(t, pgtest.DSN(t)) })
}

func idempotencyKilled(t *testing.T, store string) {
	var mu sync.Mutex
	var keys []string
	asked, killed := make(chan struct{}, 10), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		n := len(keys)
		mu.Unlock()
		asked <- struct{}{}
		if n == 1 {
			<-killed
		}
		fmt.Fprintf(w, "charge %d", n)
	}))
	t.Cleanup(service.Close)
	dir := t.TempDir()
	serve := []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", store,
		"--source", "charges", "--mode", "idempotency", "--to", service.URL,
		"--idempotency-scope", "none", "--idempotency-lease", "1s"}
	p := mustLaunch(t, dir, serve...)
	first := make(chan error, 1)
	go func() {
		_, _, err := order(p.addr)
		first <- err
	}()
	<-asked
	p.signal(syscall.SIGKILL)
	p.wait() // it was killed, and says so
	close(killed)
	if err := <-first; err == nil {
		t.Error("the client was answered by a gateway that was killed")
	}
	p = mustLaunch(t, dir, serve...)
	status, text := insistOnOrder(t, p.addr)
	again, same := insistOnOrder(t, p.addr)
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Errorf("the last stop: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if text != "charge 2" || same != text || again != status || len(keys) != 2 || keys[0] != "k1" || keys[1] != "k1" {
		t.Errorf("the copies were answered %d %q and %d %q; the service was asked under %q", status, text, again, same, keys)
	}
}

// insistOnOrder sends the request until it is not told any more to come again.
func insistOnOrder(t *testing.T, addr string) (status int, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var err error
		if status, text, err = order(addr); err != nil {
			t.Fatal(err)
		}
		if status != http.StatusConflict {
			break
		}
		time.Sleep(50 * time.Millisecond) // as a client does that is told to come again
	}
	return status, text
}

func order(addr string) (status int, text string, err error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/in/charges/orders", strings.NewReader("10"))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Idempotency-Key", "k1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}
