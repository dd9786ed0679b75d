package endtoend

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

var backlog = flag.Int("backlog", 10_000, "how many events wait for the gateway in the test of a backlog")

// What the gateway may have in memory: the deliveries that it holds, and its heap, which may grow to five
// times what is alive (64 MiB of held deliveries, and as much again for everything else).
const (
	mostHeld = 4096
	mostHeap = 5 * (64 + 64) << 20
)

// TestBacklogDrains starts a gateway on a Postgres in which far more waits than it may hold. Everything is
// delivered once, and its memory stays within its bounds. `make backlog` has a million wait.
func TestBacklogDrains(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn, n := pgtest.DSN(t), *backlog
	pile(t, dsn, n)
	yard := newYard(t, n)
	p := mustLaunch(t, t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", dsn,
		"--source", "orders", "--provider", "hmac", "--secret", killSecret, "--to", yard.URL,
		"--delivery-timeout", patience.String(), "--delivery-lease", patience.String()) // or a machine that is busy has some come twice
	began := time.Now()
	var held, heap float64
	for more := true; more; {
		select {
		case _, more = <-yard.progress:
		case <-time.After(patience):
			t.Fatalf("%d of %d events are left, and none has come for long\n%s", yard.missing(), n, p.log)
		}
		sample := scrape(t, p.admin)
		held = max(held, sample["hookonce_journal_held"])
		heap = max(heap, sample["go_memstats_heap_inuse_bytes"])
	}
	t.Logf("%d deliveries in %v; at most %.0f held, %.0f MiB of heap", n, time.Since(began).Round(time.Millisecond), held, heap/(1<<20))
	if held == 0 || held > mostHeld {
		t.Errorf("%.0f deliveries were held, want at most %d", held, mostHeld)
	}
	if heap == 0 || heap > mostHeap {
		t.Errorf("the heap grew to %.0f bytes, want at most %d", heap, mostHeap)
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	yard.check(t)
}

// pileSQL stores events $1 to $2 as if they had been accepted, for others to deliver, an hour ago.
var pileSQL = []string{
	`INSERT INTO hookonce.events (id, source, key, received_at) SELECT $3::bigint + n, 'orders', n::text, $4 FROM generate_series($1::bigint, $2) n`,
	`INSERT INTO hookonce.bodies (event_id, header, body)
		SELECT $3::bigint + n, convert_to(E'Content-Type: application/octet-stream\r\n', 'UTF8'), convert_to(repeat('x', $4), 'UTF8')
		FROM generate_series($1::bigint, $2) n`,
	`INSERT INTO hookonce.deliveries (event_id, destination, state, token, tries, due_at)
		SELECT $3::bigint + n, 'orders', 'pending', 0, 0, $4 FROM generate_series($1::bigint, $2) n`,
}

// pile makes the tables and n events, whose bodies together are far more than may be held.
func pile(t *testing.T, dsn string, n int) {
	t.Helper()
	if out, err := exec.Command("hookonce", "migrate", "--store", dsn).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	at := time.Now().Add(-time.Hour)
	size := max(2<<10, 320<<20/n)
	for i, arg := range []any{at, size, at} {
		if _, err := conn.Exec(t.Context(), pileSQL[i], 0, n-1, journal.FirstID(at), arg); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "ANALYZE hookonce.events, hookonce.bodies, hookonce.deliveries"); err != nil {
		t.Fatal(err)
	}
}

// yard is a destination that counts how often it was given each of n events.
type yard struct {
	*httptest.Server
	mu       sync.Mutex
	times    []int
	left     int
	progress chan struct{} // receives now and then; closed when everything has come
}

func newYard(t *testing.T, n int) *yard {
	y := &yard{times: make([]int, n), left: n, progress: make(chan struct{}, 1)}
	y.Server = httptest.NewServer(y)
	t.Cleanup(y.Close)
	return y
}

func (y *yard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.Header.Get("Hookonce-Key"))
	if err != nil || n < 0 || n >= len(y.times) {
		http.Error(w, "no such event", http.StatusGone)
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.times[n]++; y.times[n] > 1 {
		return
	}
	y.left--
	if y.left%(len(y.times)/50+1) == 0 {
		select {
		case y.progress <- struct{}{}:
		default:
		}
	}
	if y.left == 0 {
		close(y.progress)
	}
}

func (y *yard) missing() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.left
}

func (y *yard) check(t *testing.T) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for n, times := range y.times {
		if times != 1 {
			t.Errorf("event %d was delivered %d times", n, times)
		}
	}
}

// scrape reads the metrics without labels.
func scrape(t *testing.T, admin string) map[string]float64 {
	t.Helper()
	res, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = v
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if len(values) == 0 {
		t.Fatal(fmt.Errorf("there are no metrics at %s", admin))
	}
	return values
}
