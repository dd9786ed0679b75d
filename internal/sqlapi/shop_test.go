package sqlapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgerror"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// shopSecret signs the events of the examples.
const shopSecret = "a-fake-secret"

// shop is a database with the tables of the examples, and the programs that work on it.
type shop struct {
	dsn  string
	pool *pgxpool.Pool
	http http.Client
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{dsn: pgtest.DSN(t), http: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	s.pool = connect(t, s.dsn)
	migrate(t, s.pool, "hookonce")
	tables, err := os.ReadFile("../../examples/sql/shop.sql")
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, s.pool, string(tables))
	mustExec(t, s.pool, "INSERT INTO customers VALUES ('cus_1')")
	return s
}

func (s *shop) node(t *testing.T) (url string) {
	return s.start(t, "node", filepath.Join(installed(t), "shop.mjs"))
}

// installed returns a copy of the example for Node with what it needs.
func installed(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/sql/node")); err != nil {
		t.Fatal(err)
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v (run scripts/install-servers if Node is missing)\n%s", err, out)
	}
	return dir
}

func (s *shop) python(t *testing.T) (url string) {
	return s.start(t, "/usr/bin/python3", "../../examples/sql/python/shop.py")
}

// start starts a program, which prints where it listens, and ends it with the test.
func (s *shop) start(t *testing.T, name string, args ...string) (url string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.dsn, "SHOP_SECRET="+shopSecret, "PORT=0", "PGAPPNAME=shop")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (run scripts/install-servers)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%s did not start: %v\n%s", name, err, log.String())
	}
	return strings.TrimSpace(line)
}

// library serves the same with the Go library.
func (s *shop) library(t *testing.T) (url string) {
	p := provider.HMAC(provider.HMACConfig{Secrets: []string{shopSecret}})
	store := pgstore.New(s.pool)
	h := hookonce.Webhook(store, "shop", p, func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		_, err := tx.Exec(ctx, "INSERT INTO orders (event_id, customer, cents) VALUES ($1, 'cus_1', 1)", ev.Key)
		if err == nil {
			err = hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail.receipt"})
		}
		return err
	})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// event is the body of an event; without an id it has none.
func event(id, customer string) string {
	if id != "" {
		id = fmt.Sprintf("%q: %q, ", "id", id)
	}
	return fmt.Sprintf(`{%s"type": "order.paid", "customer": %q, "cents": 1999}`, id, customer)
}

// send posts a body, signed, and returns the status.
func (s *shop) send(url, body, secret string) (int, error) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (s *shop) mustSend(t *testing.T, url, body string, want int) {
	t.Helper()
	if got, err := s.send(url, body, shopSecret); err != nil || got != want {
		t.Fatalf("%s is answered %d, %v; want %d", body, got, err, want)
	}
}

// storm sends so many copies of so many events at once, to the programs in turn, each until it is
// acknowledged.
func (s *shop) storm(t *testing.T, events, copies int, urls ...string) {
	t.Helper()
	var g errgroup.Group
	for c := range copies {
		g.Go(func() error {
			for e := range events {
				body := event(fmt.Sprint("evt_", e), "cus_1")
				for status := 0; status != http.StatusOK; {
					var err error
					if status, err = s.send(urls[c%len(urls)], body, shopSecret); err != nil {
						return err
					}
					if status != http.StatusOK && status != http.StatusServiceUnavailable {
						return fmt.Errorf("%s: status %d", body, status)
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	s.booked(t, events)
}

// booked checks that every event has one order and one effect, and is done.
func (s *shop) booked(t *testing.T, events int) {
	t.Helper()
	var orders, distinct, effects, done int
	err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM orders WHERE event_id IS NOT NULL),
		(SELECT count(DISTINCT event_id) FROM orders), (SELECT count(*) FROM hookonce.effects WHERE key IS NOT NULL),
		(SELECT count(*) FROM hookonce.claims WHERE state = 'done')`).Scan(&orders, &distinct, &effects, &done)
	if err != nil || orders != events || distinct != events || effects != events || done != events {
		t.Fatalf("%d orders of %d events, %d effects, %d claims done, %v; want %d of each", orders, distinct, effects, done, err, events)
	}
}

// The same is asked of the example in each language.
func TestExamples(t *testing.T) {
	for name, start := range map[string]func(*shop, *testing.T) string{"node": (*shop).node, "python": (*shop).python} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			url := start(s, t)
			t.Run("copies at once have one effect", func(t *testing.T) { s.storm(t, 5, 12, url) })
			t.Run("a copy is acknowledged and does nothing", func(t *testing.T) {
				s.mustSend(t, url, event("evt_0", "cus_1"), http.StatusOK)
				s.booked(t, 5)
			})
			t.Run("a failure is undone, on record, and tried again", func(t *testing.T) { s.fails(t, url) })
			t.Run("who did not sign is refused", func(t *testing.T) { s.unverified(t, url) })
			t.Run("an event without an id is handled each time", func(t *testing.T) { s.unkeyed(t, url) })
		})
	}
}

func (s *shop) fails(t *testing.T, url string) {
	body := event("evt_early", "cus_late") // comes before its customer
	for attempt := range int64(2) {
		s.mustSend(t, url, body, http.StatusServiceUnavailable)
		var state, lastError string
		var token int64
		err := s.pool.QueryRow(t.Context(), "SELECT state, token, last_error FROM hookonce.lookup('shop', 'evt_early')").Scan(&state, &token, &lastError)
		if err != nil || state != "failed" || token != attempt+1 || !strings.Contains(lastError, "foreign key") {
			t.Fatalf("the trace is %s, token %d, %q, %v", state, token, lastError, err)
		}
	}
	s.booked(t, 5)
	mustExec(t, s.pool, "INSERT INTO customers VALUES ('cus_late')")
	s.mustSend(t, url, body, http.StatusOK)
	s.booked(t, 6)
}

func (s *shop) unverified(t *testing.T, url string) {
	body := event("evt_forged", "cus_1")
	if got, err := s.send(url, body, "another-secret"); err != nil || got != http.StatusUnauthorized {
		t.Fatalf("a forged event is answered %d, %v", got, err)
	}
	s.booked(t, 6)
	s.mustSend(t, url, body, http.StatusOK)
	s.booked(t, 7)
}

func (s *shop) unkeyed(t *testing.T, url string) {
	for range 2 {
		s.mustSend(t, url, event("", "cus_1"), http.StatusOK)
	}
	var orders int
	err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM orders WHERE event_id IS NULL").Scan(&orders)
	if err != nil || orders != 2 {
		t.Fatalf("%d orders without an event, %v; want 2", orders, err)
	}
	s.booked(t, 7)
}

// A program that catches the error of a statement and goes on has its COMMIT answered with ROLLBACK, and no error.
// It must not acknowledge what is not there.
func TestExamplesNoticeAHiddenError(t *testing.T) {
	testskip.Long(t)
	for name, c := range map[string]struct {
		program         func(t *testing.T) (path string)
		command         string
		booking, hidden string
	}{
		"node": {func(t *testing.T) string { return filepath.Join(installed(t), "shop.mjs") }, "node",
			"await book(client, event);\n", "await book(client, event).catch(() => {});\n"},
		"python": {func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../../examples/sql/python")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "shop.py")
		}, "/usr/bin/python3",
			"            book(conn, event)\n", "            try: book(conn, event)\n            except psycopg.Error: pass\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			path := c.program(t)
			text, err := os.ReadFile(path)
			if err != nil || strings.Count(string(text), c.booking) != 1 {
				t.Fatalf("%s does not have %q once, %v", path, c.booking, err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), c.booking, c.hidden, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			url := s.start(t, c.command, path)
			s.mustSend(t, url, event("evt_1", "cus_late"), http.StatusServiceUnavailable)
			var state, lastError string
			err = s.pool.QueryRow(t.Context(), "SELECT state, last_error FROM hookonce.lookup('shop', 'evt_1')").Scan(&state, &lastError)
			if err != nil || state != "failed" || !strings.Contains(lastError, "rolled back") {
				t.Errorf("the trace is %s, %q, %v", state, lastError, err)
			}
			mustExec(t, s.pool, "INSERT INTO customers VALUES ('cus_late')")
			s.mustSend(t, url, event("evt_1", "cus_late"), http.StatusOK)
			s.booked(t, 1)
		})
	}
}

// A program outlives its connections, as it has to in a failover: the idle ones, and one with a transaction open.
func TestExamplesOutliveTheirConnections(t *testing.T) {
	testskip.Long(t)
	for name, start := range map[string]func(*shop, *testing.T) string{"node": (*shop).node, "python": (*shop).python} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			url := start(s, t)
			s.storm(t, 2, 2, url)
			if n := s.terminate(t, "state = 'idle'"); n == 0 && name == "node" { // the other one connects anew for each request
				t.Error("no idle connection was there to be lost")
			}
			s.storm(t, 3, 1, url)

			blocker, err := s.pool.Begin(t.Context())
			if err == nil {
				_, err = blocker.Exec(t.Context(), "LOCK TABLE orders")
			}
			if err != nil {
				t.Fatal(err)
			}
			var sent errgroup.Group
			sent.Go(func() error {
				status, err := s.send(url, event("evt_3", "cus_1"), shopSecret)
				if err == nil && status != http.StatusServiceUnavailable {
					err = fmt.Errorf("what the connection was lost of is answered %d", status)
				}
				return err
			})
			for deadline := time.Now().Add(time.Minute); s.terminate(t, "wait_event_type = 'Lock'") == 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the shop does not wait for the table")
				}
			}
			if err := errors.Join(blocker.Rollback(t.Context()), sent.Wait()); err != nil {
				t.Fatal(err)
			}
			s.storm(t, 4, 1, url)
		})
	}
}

// terminate ends the connections of the programs of which that is true, and returns how many there were.
func (s *shop) terminate(t *testing.T, which string) (n int) {
	t.Helper()
	err := s.pool.QueryRow(t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'shop' AND "+which).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What docs/sql.md has clients do that cannot tell true from false, or do not show the command tag of COMMIT.
func TestClientsThatShowLittle(t *testing.T) {
	d := newCaller(t)
	for _, rows := range []int64{1, 0} {
		tag, err := d.Exec(t.Context(), "SELECT 1 WHERE hookonce.claim('shop', 'evt_1')")
		if err != nil || tag.RowsAffected() != rows {
			t.Errorf("%d rows, %v; want %d", tag.RowsAffected(), err, rows)
		}
	}
	tx, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	is(d, tx, true, "SELECT hookonce.claim('shop', 'evt_2')")
	if _, err := tx.Exec(t.Context(), "SELECT 1 / 0"); err == nil {
		t.Fatal("a division by zero succeeds")
	}
	if _, err := tx.Exec(t.Context(), "SELECT 1"); !pgerror.FailedTransaction(err) {
		t.Errorf("the last statement says %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	is(d, d, true, "SELECT hookonce.claim('shop', 'evt_2')")
}

// Three languages, one table, the same events.
func TestThreeLanguagesRace(t *testing.T) {
	testskip.Long(t)
	s := newShop(t)
	s.storm(t, 10, 12, s.node(t), s.python(t), s.library(t))
}
