package endtoend

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

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// TestIdempotencyKilled kills the gateway while the service works on a request: nobody knows then what came
// of it. Copies are told to come again until the lease ends; then one is forwarded, under the same key, and
// from then on its answer is the answer.
func TestIdempotencyKilled(t *testing.T) {
	testskip.Long(t)
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); idempotencyKilled(t, "sqlite:hookonce.db") })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); idempotencyKilled(t, pgtest.DSN(t)) })
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
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
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

// TestOneOfTwoKilledUnderLoad kills one of two gateways on one database while clients send every request in
// three copies, to both, until they get an answer. In the end all copies have the same answer. The service was
// asked twice only about what was under way at the kill, and never at two gateways for another reason.
func TestOneOfTwoKilledUnderLoad(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	const clients, copies = 8, 3
	service := newCharges(t, clients*10)
	dsn := pgtest.DSN(t)
	launch := func(name string) *process {
		// The lease is so long that a gateway which runs does not lose one, however busy the machine is.
		return mustLaunch(t, t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", dsn, "--source", "charges",
			"--mode", "idempotency", "--to", service.URL+"/"+name, "--idempotency-scope", "none", "--idempotency-lease", "10s")
	}
	doomed, survivor := launch(doomedName), launch(survivorName)
	heard := make(chan [2]string, clients*20*copies)
	var all sync.WaitGroup
	for i := range clients {
		for c := range copies {
			all.Go(func() {
				for n := range 20 {
					key := fmt.Sprintf("client%d-%d", i, n)
					text := persist(t, key, doomed, survivor, c)
					service.answered(key)
					heard <- [2]string{key, text}
				}
			})
		}
	}
	<-service.half
	service.killing()
	if err := doomed.kill(); err != nil {
		t.Error(err)
	}
	all.Wait()
	close(heard)
	texts := map[string]string{}
	for h := range heard {
		if first, ok := texts[h[0]]; ok && first != h[1] {
			t.Errorf("copies of %s were answered %q and %q", h[0], first, h[1])
		}
		texts[h[0]] = h[1]
	}
	service.check(t, clients*20)
}

// The gateways, as their service knows them.
const doomedName, survivorName = "doomed", "survivor"

// charges is a service that notes who asks about which key, and which answers were known when one of its gateways was killed.
type charges struct {
	*httptest.Server
	half chan struct{} // closed when it has been asked about half of the keys

	mu     sync.Mutex
	asked  map[string][]question // by key
	known  map[string]bool       // keys whose answer a client had before the kill
	killed bool
}

// question is one time that the service was asked about a key.
type question struct {
	by     string
	killed bool // it came after the kill
}

func newCharges(t *testing.T, half int) *charges {
	s := &charges{half: make(chan struct{}), asked: map[string][]question{}, known: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		by, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		s.mu.Lock()
		s.asked[key] = append(s.asked[key], question{by, s.killed})
		n := len(s.asked[key])
		if len(s.asked) == half && n == 1 {
			close(s.half)
		}
		s.mu.Unlock()
		fmt.Fprintf(w, "%s, attempt %d", key, n)
	}))
	t.Cleanup(s.Close)
	return s
}

// answered notes that a client has the answer about a key.
func (s *charges) answered(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.killed {
		s.known[key] = true
	}
}

// killing notes that one of the gateways is killed now.
func (s *charges) killing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
}

// check fails the test unless the service was asked about so many keys, each once. Again it is asked by the survivor alone, after the
// kill, about what the other one had asked about and no client had the answer of.
func (s *charges) check(t *testing.T, keys int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) != keys {
		t.Errorf("the service was asked about %d requests of %d", len(s.asked), keys)
	}
	again := 0
	for key, all := range s.asked {
		if len(all) == 1 {
			continue
		}
		again++
		if len(all) > 2 || all[0].by != doomedName || all[1] != (question{survivorName, true}) || s.known[key] {
			t.Errorf("the service was asked about %s, whose answer was known at the kill: %v, by %+v", key, s.known[key], all)
		}
	}
	t.Logf("%d requests were under way at the kill", again)
}

// persist sends a copy until it is answered, first to one gateway and then to the other, and returns the
// answer.
func persist(t *testing.T, key string, doomed, survivor *process, turn int) string {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); turn++ {
		to := survivor
		if turn%2 == 0 {
			to = doomed
		}
		switch status, text, err := orderAs(to.addr, key); {
		case err == nil && status == http.StatusOK:
			return text
		case err == nil && status != http.StatusConflict && status < 500:
			t.Errorf("%s was answered %d %s", key, status, text)
			return text
		}
		time.Sleep(10 * time.Millisecond) // as a client does that is told to come again
	}
	t.Errorf("%s was not answered in time", key)
	return ""
}

func order(addr string) (status int, text string, err error) { return orderAs(addr, "k1") }

func orderAs(addr, key string) (status int, text string, err error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/in/charges/orders", strings.NewReader("10"))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}
