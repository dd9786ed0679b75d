package endtoend

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// takeover is how long the work of a killed gateway may lie idle: a lease, and until somebody looks. A machine
// that is busy with other tests may add the slack.
const (
	takeover = 10 * time.Second
	slack    = 5 * time.Second
)

// TestKillOneOfThree kills one of three gateways on one Postgres as kill -9 does, again and again under
// load. Nothing that was acknowledged is lost; the events of each object stay in their order; others take
// over in time; and only attempts whose outcome nobody knows are repeated, under the same key.
func TestKillOneOfThree(t *testing.T) {
	testskip.Long(t)
	f := newFleet(t, pgtest.DSN(t), usualLease)
	f.send(12)
	for range *kills {
		f.shop.awaitMore(t, 100)
		f.kill(rand.IntN(3))
	}
	f.finish()
	longest := f.shop.longest()
	t.Logf("the longest that an object stood still was %v", longest.Round(time.Millisecond))
	if longest > takeover+slack {
		t.Errorf("an object stood still for %v, far more than %v", longest, takeover)
	}
}

// TestDatabaseStopsUnderFleet stops Postgres without a checkpoint and without a word to its clients, again
// and again, while three gateways are under load. The same holds, and senders are never told anything but
// to try again.
func TestDatabaseStopsUnderFleet(t *testing.T) {
	testskip.Long(t)
	cluster := pgtest.Start(t, pgtest.Options{Fsync: true})
	f := newFleet(t, cluster.DSN(t), longLease)
	f.send(12)
	for range *kills {
		f.shop.awaitMore(t, 100)
		<-time.After(rand.N(200 * time.Millisecond))
		f.away(func() error {
			if err := cluster.Stop(true); err != nil {
				return err
			}
			return cluster.Restart()
		})
	}
	f.shop.awaitMore(t, 100)
	f.finish()
}

// TestStandbyIsPromoted kills a Postgres whose commits wait for a standby, and promotes the standby, while
// three gateways are under load. They find it by themselves, nothing that was acknowledged is lost, and
// nothing was delivered that the standby does not know.
func TestStandbyIsPromoted(t *testing.T) {
	testskip.Long(t)
	primary := pgtest.Start(t, pgtest.Options{Fsync: true})
	dsn := primary.DSN(t)
	standby := primary.Standby(t)
	f := newFleet(t, primary.Either(dsn, standby), longLease)
	f.send(12)
	f.shop.awaitMore(t, 300)
	f.away(func() error {
		if err := standby.Deafen(); err != nil {
			return err
		}
		<-time.After(time.Second) // whatever is acknowledged now is lost, so nothing must be
		if err := primary.Kill(); err != nil {
			return err
		}
		return standby.Promote()
	})
	f.shop.awaitMore(t, 300)
	f.finish()
}
