package chaos

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

var (
	events = flag.Int("events", 40, "how many events each round sends, in two copies each")
	seed   = flag.Uint64("seed", 0, "what the rounds draw from; 0: another one each time")
)

func TestMain(m *testing.M) {
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // which would report every lost connection
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// dice are what a round draws from. Goroutines share them, so the same seed gives the same numbers and not the
// same order of events.
type dice struct {
	mu   sync.Mutex
	rand *rand.Rand
}

// newDice returns the dice of a round. Its seed is in the test's log.
func newDice(t testing.TB) *dice {
	t.Helper()
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	t.Logf("-seed %d", first)
	name := fnv.New64a()
	name.Write([]byte(t.Name()))
	return &dice{rand: rand.New(rand.NewPCG(first, name.Sum64()))}
}

// n returns a number from 0 to below n.
func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.IntN(n)
}

// oneIn is true once in n times.
func (d *dice) oneIn(n int) bool { return d.n(n) == 0 }

// upTo returns a duration below limit.
func (d *dice) upTo(limit time.Duration) time.Duration { return time.Duration(d.n(int(limit))) }
