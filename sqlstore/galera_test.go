package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/galeratest"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/hookonce/hookonce/storetest"
)

var engines = flag.Int("engines", 0, "how often each thing happens to a cluster of servers; 0: these tests are left out")

// inSync is what connections to a Galera cluster need.
const inSync = "?interpolateParams=true&wsrep_sync_wait=7"

// TestGalera has everything that holds on one server hold on three, whose connections come from a balancer that gives
// each to another node.
//
// make engines
func TestGalera(t *testing.T) {
	if *engines == 0 {
		t.Skip("needs Galera: make engines")
	}
	c := galeratest.Start(t)
	t.Run("one node", func(t *testing.T) {
		conformance(t, overGalera(c, func(*atomic.Int64) int { return 1 }))
	})
	t.Run("a node for each connection", func(t *testing.T) {
		spread := overGalera(c, func(n *atomic.Int64) int { return int(n.Add(1))%galeratest.Nodes + 1 })
		cfg := spread.config(t)
		storetest.Run(t, cfg.Lease())
		storetest.RunConcurrent(t, cfg.Lease())
		storetest.RunTxResponses(t, cfg)
		storetest.RunHistory(t, cfg.History())
	})
	t.Run("two nodes race", func(t *testing.T) { raceOfNodes(t, c) })
	t.Run("a commit loses", func(t *testing.T) { commitLoses(t, c) })
	t.Run("a copy right after", func(t *testing.T) { copyRightAfter(t, c) })
	t.Run("connections that are behind", func(t *testing.T) { behind(t, c) })
	t.Run("leases across nodes", func(t *testing.T) { leasesAcrossNodes(t, c) })
	t.Run("an effect is taken over or done", func(t *testing.T) { takenOrDone(t, c) })
	t.Run("a node is cut off", func(t *testing.T) { cutOff(t, c) })
	t.Run("a node is killed", func(t *testing.T) { nodeKilled(t, c) })
}

// overGalera connects as the balancer says.
func overGalera(c *galeratest.Cluster, node func(*atomic.Int64) int) connection {
	var made atomic.Int64
	return connection{testdb.SQL{
		Dialect: sqlstore.MySQL, Parameter: "?",
		Connector: func(database string) (driver.Connector, error) {
			return balancer(func() (driver.Connector, error) {
				cfg, err := mysql.ParseDSN(c.DSN(node(&made), database) + inSync)
				if err != nil {
					return nil, err
				}
				return mysql.NewConnector(cfg)
			}), nil
		},
	}, func(testing.TB) func(testing.TB) testdb.Place { return testdb.Reused(c.Database(), "case_1") }}
}

// balancer leads each connection where it likes.
type balancer func() (driver.Connector, error)

func (b balancer) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := b()
	if err != nil {
		return nil, err
	}
	return c.Connect(ctx)
}

func (b balancer) Driver() driver.Driver { return mysql.MySQLDriver{} }

// nodes are a store on each node, over one database.
type nodes struct {
	t      *testing.T
	c      *galeratest.Cluster
	dbs    [galeratest.Nodes]*sql.DB
	stores [galeratest.Nodes]*sqlstore.Store
}

func openNodes(t *testing.T, c *galeratest.Cluster, parameters string) *nodes {
	t.Helper()
	n := &nodes{t: t, c: c}
	name := c.Database()
	for i := range n.dbs {
		db, err := sql.Open("mysql", c.DSN(i+1, name)+parameters)
		must(t, err)
		t.Cleanup(func() { db.Close() })
		n.dbs[i], n.stores[i] = db, sqlstore.New(db, sqlstore.MySQL)
	}
	_, err := schema.Migrate(t.Context(), n.dbs[0], schema.MySQL, "")
	must(t, err)
	exec(t, n.dbs[0], `CREATE TABLE happened (id VARCHAR(60) NOT NULL)`)
	return n
}

// within brings an event to a node, whose handler calls do, if there is something to do, before it has its effect.
func (n *nodes) within(node int, key string, do func()) (hookonce.Claim, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), 20*time.Second)
	defer cancel()
	return n.stores[node].Within(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "shop", Key: key}}, func(tx *sql.Tx, _ hookonce.Claim) error {
		if do != nil {
			do()
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO happened (id) VALUES (?)`, key)
		return err
	})
}

// once fails the test unless the effect of each key is there once.
func (n *nodes) once(keys ...string) {
	n.t.Helper()
	for _, key := range keys {
		if got := queryRow[int](n.t, n.dbs[0], `SELECT count(*) FROM happened WHERE id = '`+key+`'`); got != 1 {
			n.t.Errorf("the effect of %s is there %d times", key, got)
		}
	}
}

// raceOfNodes has all nodes bring the same keys at once, in handlers that have all begun before any commits.
func raceOfNodes(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, inSync)
	var won, lost, copies atomic.Int64
	for round := range 30 * *engines {
		key := fmt.Sprint("evt_", round)
		results := make(chan error, galeratest.Nodes)
		for node := range galeratest.Nodes {
			go func() {
				claim, err := n.within(node, key, nil)
				switch {
				case err == nil && claim.Verdict == hookonce.Acquired:
					won.Add(1)
				case err == nil && claim.Verdict == hookonce.Duplicate, errors.Is(err, hookonce.ErrBusy):
					copies.Add(1)
				case err != nil && !errors.Is(err, hookonce.ErrUnknownOutcome):
					lost.Add(1)
				default:
					t.Errorf("%s at node %d: %v, %v", key, node+1, claim.Verdict, err)
				}
				results <- err
			}()
		}
		for range galeratest.Nodes {
			<-results
		}
		n.once(key)
		for node := range galeratest.Nodes {
			if claim, err := n.within(node, key, nil); err != nil || claim.Verdict != hookonce.Duplicate {
				t.Errorf("a copy of %s at node %d: %v, %v", key, node+1, claim.Verdict, err)
			}
		}
	}
	t.Logf("%d attempts won, %d lost against another node, %d found it done or busy", won.Load(), lost.Load(), copies.Load())
	if want := int64(30 * *engines); won.Load() != want {
		t.Errorf("%d attempts won, want %d", won.Load(), want)
	}
}

// commitLoses has a whole event be handled at another node while a handler runs. What the second commits is refused, which is
// a lost race and no unknown outcome: it is a duplicate of what the other did. Where that one failed, the attempt has failed.
func commitLoses(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, inSync)
	claim, err := n.within(0, "evt_1", func() {
		claim, err := n.within(1, "evt_1", nil)
		must(t, err)
		if claim.Verdict != hookonce.Acquired {
			t.Errorf("the other node's verdict is %v", claim.Verdict)
		}
	})
	if err != nil || claim.Verdict != hookonce.Duplicate {
		t.Errorf("the one that lost was told %v, %v", claim.Verdict, err)
	}
	n.once("evt_1")
	for node := range galeratest.Nodes {
		stored, err := n.stores[node].Lookup(t.Context(), hookonce.Ref{Source: "shop", Key: "evt_1"})
		if err != nil || stored.State != hookonce.StateDone {
			t.Errorf("at node %d it is %v, %v", node+1, stored.State, err)
		}
	}
	_, err = n.within(0, "evt_2", func() {
		_, err := n.stores[1].Within(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "shop", Key: "evt_2"}},
			func(*sql.Tx, hookonce.Claim) error { return errors.New("declined") })
		if err == nil {
			t.Error("the failure of the other node was lost")
		}
	})
	if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Errorf("an attempt that lost against a failure was told %v, want an error that says that nothing was committed", err)
	}
	_, err = n.within(2, "evt_2", nil)
	must(t, err)
	n.once("evt_2")
}

// takenOrDone has one node complete an effect whose lease ran out while another takes it over: never do both succeed.
func takenOrDone(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, inSync)
	took, completed := 0, 0
	for round := range 100 * *engines {
		exec(t, n.dbs[0], `DELETE FROM hookonce_effects`, "INSERT INTO hookonce_effects (source, `key`, step, name, payload, state, token, tries, due_at, enqueued_at, updated_at, last_error) "+
			"VALUES ('shop', 'evt_1', '', 'mail', '', 'processing', 1, 1, 1, 1, 1, '')")
		id := queryRow[int64](t, n.dbs[0], `SELECT id FROM hookonce_effects`)
		var both errgroup.Group
		var stale bool
		var taken []hookonce.QueuedEffect
		both.Go(func() error {
			err := n.stores[round%3].CompleteEffect(t.Context(), hookonce.QueuedEffect{ID: id, Token: 1})
			if stale = errors.Is(err, hookonce.ErrStale); stale {
				return nil
			}
			return err
		})
		both.Go(func() (err error) {
			taken, err = n.stores[(round+1)%3].TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Suspects: 1, Lease: time.Minute})
			return err
		})
		must(t, both.Wait())
		if stale != (len(taken) == 1) {
			t.Fatalf("taken over: %d, and the outcome was stale: %v", len(taken), stale)
		}
		took += len(taken)
		completed += 1 - len(taken)
	}
	t.Logf("%d were taken over, %d completed", took, completed)
}

// copyRightAfter brings copies to other nodes right after the commit, whose answer they must give.
func copyRightAfter(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, inSync)
	for round := range 200 * *engines {
		key := fmt.Sprint("evt_", round)
		_, err := n.within(round%3, key, nil)
		must(t, err)
		if claim, err := n.within((round+1)%3, key, nil); err != nil || claim.Verdict != hookonce.Duplicate {
			t.Fatalf("a copy of %s: %v, %v", key, claim.Verdict, err)
		}
	}
}

// behind: connections whose reads may be older than what others committed are refused.
func behind(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, "")
	if err := n.stores[0].Check(t.Context()); err == nil || !strings.Contains(err.Error(), "wsrep_sync_wait=7") {
		t.Errorf("connections that read what is out of date: %v", err)
	}
	n = openNodes(t, c, inSync)
	must(t, n.stores[0].Check(t.Context()))
}

// leasesAcrossNodes: who has a lease at one node keeps it at the others, and who lost it can do nothing anywhere.
func leasesAcrossNodes(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, inSync)
	for round := range 50 * *engines {
		req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "shop", Key: fmt.Sprint("evt_", round)}, Lease: time.Millisecond}
		first, err := n.stores[0].Claim(t.Context(), req)
		must(t, err)
		time.Sleep(2 * time.Millisecond) // the lease, by the clock of the machine
		req.Lease = time.Minute
		second, err := n.stores[1].Claim(t.Context(), req)
		must(t, err)
		if second.Verdict != hookonce.Acquired || second.Token != first.Token+1 {
			t.Fatalf("%s was taken over with %v under token %d", req.Key, second.Verdict, second.Token)
		}
		if err := n.stores[2].Complete(t.Context(), first); !errors.Is(err, hookonce.ErrStale) {
			t.Fatalf("%s: who lost the lease was told %v", req.Key, err)
		}
		_, err = n.stores[0].Extend(t.Context(), second, time.Minute)
		must(t, err)
		must(t, n.stores[2].Complete(t.Context(), second))
	}
}

// cutOff: a node that is not in the primary component takes nothing, says so, and takes no lead from what it has.
func cutOff(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, inSync)
	_, err := n.within(0, "evt_before", nil)
	must(t, err)
	rejoin := c.Isolate(3)
	for name, err := range map[string]error{
		"a new event": second(n.within(2, "evt_new", nil)),
		"a known one": second(n.within(2, "evt_before", nil)),
		"a lease":     second(n.stores[2].Claim(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "shop", Key: "evt_lease"}, Lease: time.Minute})),
		"a look":      second(n.stores[2].Lookup(t.Context(), hookonce.Ref{Source: "shop", Key: "evt_before"})),
		"the check":   n.stores[2].Check(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), "primary component") || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Errorf("%s at a node that is cut off: %v", name, err)
		}
	}
	_, err = n.within(0, "evt_new", nil)
	must(t, err)
	rejoin()
	claim, err := n.within(2, "evt_new", nil)
	if err != nil || claim.Verdict != hookonce.Duplicate {
		t.Errorf("after it came back: %v, %v", claim.Verdict, err)
	}
	n.once("evt_before", "evt_new")
}

func second[T any](_ T, err error) error { return err }

// nodeKilled kills a node with a transaction under way, whose event another node takes.
func nodeKilled(t *testing.T, c *galeratest.Cluster) {
	n := openNodes(t, c, inSync)
	_, err := n.within(1, "evt_done", nil)
	must(t, err)
	var restart func()
	if _, err := n.within(1, "evt_open", func() { restart = c.Kill(2) }); err == nil {
		t.Error("an attempt was acknowledged whose node was killed")
	}
	for _, key := range []string{"evt_done", "evt_open"} {
		_, err := n.within(0, key, nil)
		must(t, err)
	}
	restart()
	n.once("evt_done", "evt_open")
	for _, key := range []string{"evt_done", "evt_open"} {
		if claim, err := n.within(1, key, nil); err != nil || claim.Verdict != hookonce.Duplicate {
			t.Errorf("%s at the node that came back: %v, %v", key, claim.Verdict, err)
		}
	}
}
