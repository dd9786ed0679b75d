package main

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// databases are where the shop runs.
var databases = map[string]func(t *testing.T) string{
	"PostgreSQL": func(t *testing.T) string { return pgtest.DSN(t) },
	"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "shop.db") },
	"MariaDB":    func(t *testing.T) string { return "mysql:" + mariadbtest.DSN(t) },
}

// count returns the number that a query says.
func count(t testing.TB, d *database, query string, args ...any) (n int) {
	t.Helper()
	if err := d.QueryRow(d.text(query), args...).Scan(&n); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return n
}

// Whatever senders and clients do, each order and each fee is booked once.
func TestStorms(t *testing.T) {
	for name, dsn := range databases {
		t.Run(name, func(t *testing.T) {
			d, err := open(t.Context(), dsn(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			h := newShop(d, addresses{mail: "http://mail.example"}, secret).handler()
			storm := hookoncetest.Storm(t, h, provider.Stripe(secret), hookoncetest.URL("https://shop.example/webhooks/stripe"), hookoncetest.Body(func(of spec.Sample) []byte {
				return fmt.Appendf(nil, `{"id":%q,"object":"event","type":"payout.paid","created":%d,"data":{"object":{"id":"po_%s"}}}`, of.ID, of.Time.Unix(), of.ID)
			}))
			storm.Once(t, func(key string) int { return count(t, d, "SELECT count(*) FROM fees WHERE payout = ?", "po_"+key) })
			clients := hookoncetest.ClientStorm(t, h, func(key string) *http.Request {
				r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(fmt.Sprintf(`{"reference":%q,"cents":5}`, key)))
				r.SetBasicAuth("customer", "fake")
				return r
			})
			clients.Once(t, func(key string) int { return count(t, d, "SELECT count(*) FROM orders WHERE reference = ?", key) })
		})
	}
}

const (
	seed   = 7
	orders = 12 // in each half of the day
	kills  = 4  // as well
)

// A day in which the process is killed again and again, and what was done is forgotten at noon. At the end everybody
// who has anything to do with the shop is asked what happened.
func TestKilled(t *testing.T) {
	testskip.Long(t)
	program := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-mod=mod", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, dsn := range databases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, seed)
			s := &service{t: t, world: w, program: program, dsn: dsn(t), listen: freeAddress(t)}
			w.shop = "http://" + s.listen
			d, err := open(t.Context(), s.dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			s.start()
			for half := range 2 {
				s.half(half)
				s.settle(d, (half+1)*orders)
				s.forget(d)
			}
			s.stop()
			w.judge(d)
		})
	}
}

// service is the process.
type service struct {
	*world
	t                    *testing.T
	program, dsn, listen string
	cmd                  *exec.Cmd
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts the process, and returns when it serves.
func (s *service) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.program, "--listen", s.listen, "--db", s.dsn, "--bank", s.server.URL, "--mail", s.server.URL+"/mail", "--queue", s.server.URL,
		"--lease", "1s", "--retry", "100ms")
	s.cmd.Env = append(os.Environ(), "STRIPE_WEBHOOK_SECRET="+secret)
	var log strings.Builder
	s.cmd.Stderr = &log
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := s.cmd
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = s.cmd.Wait()
		s.t.Fatalf("it did not start: %v\n%s", err, log.String())
	}
}

func (s *service) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("it ended with %v", err)
	}
}

// half is one half of the day: customers, events of the bank, and a process that is killed at random moments.
func (s *service) half(n int) {
	moments := rand.New(rand.NewPCG(seed, uint64(n)))
	var customers sync.WaitGroup
	for i := range orders {
		begin := time.After(time.Duration(moments.IntN(2000)) * time.Millisecond)
		customers.Go(func() {
			<-begin
			s.buy(fmt.Sprintf("%d-%d", n, i), 100+i, i%3 == 0)
		})
	}
	for i := range 4 { // each payout is told of twice, in different words
		for _, kind := range []string{"payout.paid", "payout.reconciliation_completed"} {
			payout := fmt.Sprintf("po_%d_%d", n, i)
			s.event("evt_"+kind+payout, kind, map[string]any{"id": payout, "object": "payout"}, time.Now())
		}
	}
	for _, version := range moments.Perm(6) { // in any order
		at := time.Unix(1767225600+int64(10*n+version), 0)
		s.event(fmt.Sprintf("evt_price_%d_%d", n, version), "price.updated", map[string]any{"id": "price_1", "object": "price", "unit_amount": 10*n + version}, at)
	}
	for range kills {
		time.Sleep(time.Duration(100+moments.IntN(500)) * time.Millisecond)
		if err := s.cmd.Process.Kill(); err != nil {
			s.t.Fatal(err)
		}
		_ = s.cmd.Wait()
		s.start()
	}
	customers.Wait()
}

// table is the name of one of hookonce's tables.
func (s *service) table(name string) string {
	if strings.HasPrefix(s.dsn, "postgres") {
		return "hookonce." + name
	}
	return "hookonce_" + name
}

// forget purges claims and effects as if they were old.
func (s *service) forget(d *database) {
	s.t.Helper()
	for kind, table := range map[hookonce.PurgeKind]string{hookonce.PurgeEvents: "claims WHERE source NOT LIKE 'once:%'", hookonce.PurgeEffects: "effects"} {
		n, err := d.store.Purge(s.t.Context(), hookonce.PurgeRequest{Kind: kind, Before: time.Now(), Limit: 10_000})
		if left := count(s.t, d, "SELECT count(*) FROM "+s.table(table)); err != nil || n == 0 || left != 0 {
			s.t.Errorf("%d %s were purged, %v; %d are left", n, kind, err, left)
		}
	}
}

func (s *service) await(what string, reached func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !reached(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

// settle waits until nothing is under way any more.
func (s *service) settle(d *database, all int) {
	s.t.Helper()
	s.await("everything is shipped", func() bool {
		s.mu.Lock()
		queued := len(s.queue)
		s.mu.Unlock()
		return queued == 0 && count(s.t, d, "SELECT count(*) FROM shipments") >= all && count(s.t, d, "SELECT count(*) FROM repayments") >= (all+2)/3
	})
	var open []string
	defer func() {
		if s.t.Failed() {
			s.t.Log("effects that are not done:\n", strings.Join(open, "\n "))
		}
	}()
	s.await("every effect is done", func() bool {
		open = s.open(d)
		return len(open) == 0
	})
	s.senders.Wait()
}

// open returns the effects that are not done, and does what an operator does about those that were given up: where processes die
// faster than they work, as on a busy machine here, one may have died with each of the first attempts at an effect, and that is
// told from an effect that kills its process by whoever looks.
func (s *service) open(d *database) (all []string) {
	s.t.Helper()
	rows, err := d.Query("SELECT id, name, state, tries, deaths, coalesce(last_error, '') FROM " + s.table("effects") + " WHERE state <> 'done'")
	if err != nil {
		s.t.Fatal(err)
	}
	var dead []int64
	for rows.Next() {
		var id int64
		var tries, deaths int
		var name, state, last string
		if err := rows.Scan(&id, &name, &state, &tries, &deaths, &last); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d %s: %s, %d tries, %d deaths, %s", id, name, state, tries, deaths, last))
		if state == "dead" && strings.Contains(last, "in a row left no outcome") {
			dead = append(dead, id)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		s.t.Fatal(err)
	}
	for _, id := range dead {
		if err := d.store.RedriveEffect(s.t.Context(), id); err != nil {
			s.t.Error(err)
		}
	}
	return all
}

// judge counts, by the records of everybody.
func (w *world) judge(d *database) {
	rows, err := d.Query("SELECT id, reference, cents FROM orders")
	if err != nil {
		w.t.Fatal(err)
	}
	w.each(rows, 2*orders, func(id, reference string, cents int) {
		w.once(d, "payments WHERE order_id = ?", id)
		w.once(d, "shipments WHERE order_id = ?", id)
		w.once(d, "orders WHERE reference = ?", reference)
		if w.charged[id] != cents || w.mails["paid "+id] != 1 || w.mails["shipped "+id] != 1 {
			w.t.Errorf("order %s of %d: charged %d, %d mails of the payment, %d of the shipment", reference, cents, w.charged[id], w.mails["paid "+id], w.mails["shipped "+id])
		}
	})
	if rows, err = d.Query("SELECT id, order_id, cents FROM refunds"); err != nil {
		w.t.Fatal(err)
	}
	w.each(rows, 2*((orders+2)/3), func(id, order string, cents int) {
		w.once(d, "repayments WHERE refund_id = ?", id)
		w.once(d, "refunds WHERE order_id = ?", order)
		if w.repaid[id] != cents || w.mails["repaid "+id] != 1 {
			w.t.Errorf("refund %s of %d: repaid %d, %d mails", id, cents, w.repaid[id], w.mails["repaid "+id])
		}
	})
	for half := range 2 {
		for i := range 4 {
			w.once(d, "fees WHERE payout = ?", fmt.Sprintf("po_%d_%d", half, i))
		}
	}
	if n := count(w.t, d, "SELECT count(*) FROM fees"); n != 8 || len(w.charged) != 2*orders {
		w.t.Errorf("%d fees, %d orders charged", n, len(w.charged))
	}
	if cents := count(w.t, d, "SELECT cents FROM prices"); cents != 15 {
		w.t.Errorf("the price is %d, and not that of the newest event", cents)
	}
}

// once checks that there is one row.
func (w *world) once(d *database, where, value string) {
	w.t.Helper()
	if n := count(w.t, d, "SELECT count(*) FROM "+where, value); n != 1 {
		w.t.Errorf("%d %s (%s)", n, where, value)
	}
}

// each reads rows, of which there are so many.
func (w *world) each(rows *sql.Rows, want int, check func(id, other string, cents int)) {
	w.t.Helper()
	defer rows.Close()
	type row struct {
		id, other string
		cents     int
	}
	var all []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.other, &r.cents); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil || len(all) != want {
		w.t.Errorf("%d rows, %v; want %d", len(all), err, want)
	}
	for _, r := range all {
		check(r.id, r.other, r.cents)
	}
}
