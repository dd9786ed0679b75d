package endtoend

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
)

// TestSyncKilled kills the gateway while the application works on its answer: nobody knows then what was
// answered. The copy asks again under the same Idempotency-Key, and gets the answer to that.
func TestSyncKilled(t *testing.T) {
	testskip.Long(t)
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); syncKilled(t, "sqlite:hookonce.db") })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); syncKilled(t, pgtest.DSN(t)) })
}

func syncKilled(t *testing.T, store string) {
	var mu sync.Mutex
	var keys []string
	asked, killed := make(chan struct{}, 10), make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		n := len(keys)
		mu.Unlock()
		asked <- struct{}{}
		if n == 1 {
			<-killed
		}
		fmt.Fprintf(w, "answer %d", n)
	}))
	t.Cleanup(app.Close)
	dir := t.TempDir()
	serve := []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", store,
		"--source", "orders", "--provider", "hmac", "--secret", killSecret, "--to", app.URL,
		"--mode", "sync", "--deadline", "20s", "--delivery-lease", "1s"}
	p := mustLaunch(t, dir, serve...)
	first := make(chan error, 1)
	go func() {
		_, _, err := ask(p.addr, `{"id":"evt_1","type":"order.paid"}`)
		first <- err
	}()
	<-asked
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	close(killed)
	if err := <-first; err == nil {
		t.Error("the sender was answered by a gateway that was killed")
	}
	p = mustLaunch(t, dir, serve...)
	status, text := 0, ""
	for deadline := time.Now().Add(patience); status != http.StatusOK && time.Now().Before(deadline); time.Sleep(look) {
		var err error
		if status, text, err = ask(p.addr, `{"id":"evt_1","type":"order.paid"}`); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Errorf("the last stop: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if text != "answer 2" || len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
		t.Errorf("the copy was answered %d %q; the application was asked under %q", status, text, keys)
	}
}

// ask posts a signed event to the source orders and reads the answer.
func ask(addr, body string) (status int, text string, err error) {
	signed := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: []byte(body), Now: time.Now()}
	if err := provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}}).Sign(signed); err != nil {
		return 0, "", err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/in/orders", bytes.NewReader(signed.Body))
	if err != nil {
		return 0, "", err
	}
	req.Header = signed.Header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}
