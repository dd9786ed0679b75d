package endtoend

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/patronitest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
)

var engines = flag.Int("engines", 0, "how often each thing happens to a cluster of servers; 0: these tests are left out")

// standstill is how much longer than the cluster itself the gateways may take to go on.
const standstill = 2 * time.Second

// TestPatroni has a cluster under Patroni change its leader in every way that there is, while three gateways and a program
// with the library are under load. Nothing that was acknowledged is lost, no effect is there twice, the events of each
// object stay in order, and events are accepted again within two seconds of the moment when the cluster can commit again.
//
// make engines
func TestPatroni(t *testing.T) {
	if *engines == 0 {
		t.Skip("needs Patroni and etcd: make engines")
	}
	c := patronitest.Start(t, 0)
	migrate(t, c.DSN())
	probe := newProbe(t, c)
	shop := newEffects(t, c.DSN())
	f := newFleet(t, c.DSN(), usualLease)
	f.send(12)
	shop.work(8)
	for range *engines {
		for _, happens := range patroniFaults {
			f.shop.awaitMore(t, 100)
			d := disturbance{t: t, f: f, probe: probe, shop: shop, c: c}
			d.observe(happens.name, happens.do)
		}
	}
	f.shop.awaitMore(t, 100)
	shop.finish()
	f.finish()
}

// patroniFaults are ways in which a cluster changes its leader. Each begins on a whole cluster. What they return makes it
// whole again, once another leads.
var patroniFaults = []struct {
	name string
	do   func(c *patronitest.Cluster, leader *patronitest.Node) (mend func())
}{
	{"a switchover that an operator asks for", func(c *patronitest.Cluster, _ *patronitest.Node) func() {
		c.Switchover()
		return func() {}
	}},
	{"the leader's PostgreSQL is killed", func(_ *patronitest.Cluster, leader *patronitest.Node) func() {
		leader.KillServer()
		return func() {}
	}},
	{"the leader is killed, Patroni and PostgreSQL", func(_ *patronitest.Cluster, leader *patronitest.Node) func() {
		leader.Kill()
		return leader.Start
	}},
	{"the leader is cut off from etcd and its standbys, and clients reach it", func(_ *patronitest.Cluster, leader *patronitest.Node) func() {
		return leader.Partition()
	}},
	{"the leader's Patroni stands still, and its PostgreSQL believes that it leads", func(_ *patronitest.Cluster, leader *patronitest.Node) func() {
		return leader.StopPatroni()
	}},
	{"the leader freezes, and takes connections that it does not answer", func(_ *patronitest.Cluster, leader *patronitest.Node) func() {
		return leader.Freeze()
	}},
}

// disturbance is one change of the leader under load.
type disturbance struct {
	t     *testing.T
	f     *fleet
	probe *probe
	shop  *effects
	c     *patronitest.Cluster
}

// observe has something happen to the leader, and holds how long everybody stood still against how long the cluster did.
func (d *disturbance) observe(name string, happen func(*patronitest.Cluster, *patronitest.Node) func()) {
	d.t.Helper()
	d.c.Settle()
	leader := d.c.Leader()
	began := time.Now()
	mend := happen(d.c, leader)
	d.c.Await("another leader", func() bool { l := d.c.Leader(); return l != nil && l != leader })
	elected := d.probe.after(began, leader)
	d.f.awaitAccepted(elected)
	d.shop.awaitDone(elected)
	mend()
	d.c.Settle()
	over := time.Now()
	d.f.mu.Lock()
	d.f.outages = append(d.f.outages, outage{began, over})
	d.f.mu.Unlock()

	cluster := longest(d.probe.times(), began, over)
	accepted, done := longest(d.f.accepted.all(), began, over), longest(d.shop.done.all(), began, over)
	promoted := latestOf(d.c.Promotions())
	d.t.Logf("%s: promoted after %v (Patroni's history); the cluster took no commit for %v; gateways accepted nothing for %v, the library did nothing for %v", name,
		promoted.Sub(began).Round(10*time.Millisecond), cluster.Round(10*time.Millisecond), accepted.Round(10*time.Millisecond), done.Round(10*time.Millisecond))
	for who, d2 := range map[string]time.Duration{"gateways": accepted, "the library": done} {
		if d2 > cluster+standstill {
			d.t.Errorf("%s: %s stood still for %v, the cluster for %v", name, who, d2, cluster)
		}
	}
}

func latestOf(all map[int]time.Time) (at time.Time) {
	for _, t := range all {
		at = latest(at, t)
	}
	return at
}

// moments are when something succeeded.
type moments struct {
	mu sync.Mutex
	at []time.Time
}

func (m *moments) add() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, time.Now())
}

func (m *moments) all() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.at)
}

// longest returns the longest time between two moments that reaches into the span.
func longest(at []time.Time, from, to time.Time) (d time.Duration) {
	for i := 1; i < len(at); i++ {
		if at[i].After(from) && at[i-1].Before(to) {
			d = max(d, at[i].Sub(at[i-1]))
		}
	}
	return d
}

// awaitAccepted waits until gateways acknowledged something after a moment.
func (f *fleet) awaitAccepted(after time.Time) {
	f.t.Helper()
	awaitAfter(f.t, &f.accepted, after, "gateways accept again")
}

func awaitAfter(t *testing.T, m *moments, after time.Time, what string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(look) {
		if at := m.all(); len(at) > 0 && at[len(at)-1].After(after) {
			return
		}
	}
	t.Fatalf("waited %v until %s", patience, what)
}

// probe commits rows at each node by itself, which tells when the cluster can commit, whoever leads.
type probe struct {
	c  *patronitest.Cluster
	t  *testing.T
	at [patronitest.Nodes]moments
}

func newProbe(t *testing.T, c *patronitest.Cluster) *probe {
	p := &probe{c: c, t: t}
	conn, err := pgx.Connect(t.Context(), c.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `CREATE TABLE patronitest (id bigint GENERATED ALWAYS AS IDENTITY)`); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range p.at {
		all.Go(func() { p.run(ctx, i) })
	}
	t.Cleanup(func() { stop(); all.Wait() })
	return p
}

func (p *probe) run(ctx context.Context, i int) {
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		if p.c.Node(i+1).Writable(bounded) == nil {
			p.at[i].add()
		}
		cancel()
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// after waits for a commit at another node than the one, and returns when it was.
func (p *probe) after(moment time.Time, but *patronitest.Node) time.Time {
	p.t.Helper()
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(look) {
		for i := range p.at {
			at := p.at[i].all()
			if p.c.Node(i+1) != but && len(at) > 0 && at[len(at)-1].After(moment) {
				return at[len(at)-1]
			}
		}
	}
	p.t.Fatal("no node commits any more")
	return time.Time{}
}

// times are all commits, in order.
func (p *probe) times() (all []time.Time) {
	for i := range p.at {
		all = append(all, p.at[i].all()...)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// effects is a program with the library: every event is one row, in a table that would take it twice.
type effects struct {
	t       *testing.T
	dsn     string
	pool    *pgxpool.Pool
	store   *pgstore.Store
	done    moments
	stop    chan struct{}
	workers sync.WaitGroup
	mu      sync.Mutex
	acked   map[string]bool
}

func newEffects(t *testing.T, dsn string) *effects {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	pgstore.FollowPrimary(cfg)
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE effects (key text)`); err != nil {
		t.Fatal(err)
	}
	return &effects{t: t, dsn: dsn, pool: pool, store: pgstore.New(pool), stop: make(chan struct{}), acked: map[string]bool{}}
}

// work has so many workers bring events, each in copies until one of them is acknowledged, and then once more.
func (e *effects) work(workers int) {
	for w := range workers {
		e.workers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-e.stop:
					return
				case <-time.After(rand.N(10 * time.Millisecond)):
					e.bring(fmt.Sprintf("%d-%d", w, n))
				}
			}
		})
	}
}

// bring brings an event until it is acknowledged.
func (e *effects) bring(key string) {
	for deadline := time.Now().Add(2 * patience); ; {
		err := e.once(key)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			e.t.Errorf("%s is not acknowledged: %v", key, err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	e.mu.Lock()
	e.acked[key] = true
	e.mu.Unlock()
	e.done.add()
	_ = e.once(key) // a copy, which may find the store away
}

func (e *effects) once(key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := e.store.Within(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "shop", Key: key}}, func(tx pgx.Tx, _ hookonce.Claim) error {
		_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES ($1)`, key)
		return err
	})
	return err
}

func (e *effects) awaitDone(after time.Time) {
	e.t.Helper()
	awaitAfter(e.t, &e.done, after, "the library works again")
}

// finish ends the workers and judges.
func (e *effects) finish() {
	e.t.Helper()
	close(e.stop)
	e.workers.Wait()
	rows, err := e.pool.Query(e.t.Context(), `SELECT key, count(*) FROM effects GROUP BY key`)
	if err != nil {
		e.t.Fatal(err)
	}
	var key string
	var n int
	there, doubled := map[string]bool{}, 0
	if _, err := pgx.ForEachRow(rows, []any{&key, &n}, func() error {
		there[key] = true
		if n != 1 {
			doubled++
			e.t.Errorf("the effect of %s is there %d times", key, n)
		}
		return nil
	}); err != nil {
		e.t.Fatal(err)
	}
	lost := 0
	for key := range e.acked {
		if !there[key] {
			lost++
			e.t.Errorf("%s was acknowledged, and its effect is not there", key)
		}
	}
	e.t.Logf("the library: %d events acknowledged, %d lost, %d doubled", len(e.acked), lost, doubled)
}

// migrate makes hookonce's tables in the database.
func migrate(t *testing.T, dsn string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pgtest.Migrate(t, pool, "")
}
