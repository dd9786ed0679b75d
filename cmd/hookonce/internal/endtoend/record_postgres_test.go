package endtoend

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// recordSettings returns the settings in which the servers of a run differ from PostgreSQL as it comes; docs/record.md says
// what each changes.
func recordSettings() []string {
	all := []string{"checkpoint_timeout = 30s", "wal_retrieve_retry_interval = 200ms", "wal_keep_size = 512MB"}
	if runtime.GOOS == "linux" {
		all = append(all, "recovery_init_sync_method = syncfs")
	}
	return all
}

// replicated is a Postgres whose commits wait for one of two standbys, all three behind links that stay when the servers change.
type replicated struct {
	t     *testing.T
	links [3]*cutproxy.Link
	lead  int                       // the link that leads to the primary
	whole chan struct{}             // closed while there are two standbys
	read  map[*pgtest.Cluster]int64 // of the log of each

	mu   sync.Mutex
	each [3]*pgtest.Cluster // by link
}

// replicate has standbys follow, and returns the store's connection string.
func (s *stage) replicate(primary *pgtest.Cluster) string {
	dsn, err := url.Parse(primary.DSN(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	p := &replicated{t: s.t, each: [3]*pgtest.Cluster{primary}, whole: make(chan struct{})}
	s.t.Cleanup(p.close)
	defer close(p.whole)
	for i := range p.each {
		if i > 0 {
			if p.each[i], err = primary.NewStandby(); err != nil {
				s.t.Fatal(err)
			}
			dsn.Host += ","
		} else {
			dsn.Host = ""
		}
		p.links[i] = cutproxy.NewLink(s.t, p.each[i].Addr())
		dsn.Host += p.links[i].Addr()
	}
	if err := primary.Quorum(p.each[1:]...); err != nil {
		s.t.Fatal(err)
	}
	s.pg = p
	dsn.RawQuery += "&target_session_attrs=read-write&connect_timeout=2"
	return dsn.String()
}

func (p *replicated) close() {
	<-p.whole
	for _, c := range p.servers() {
		if c != nil {
			_ = c.Close() // one that was killed says so
		}
	}
}

// servers are those that run.
func (p *replicated) servers() []*pgtest.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*pgtest.Cluster(nil), p.each[:]...)
}

func (p *replicated) primary() *pgtest.Cluster { return p.servers()[p.lead] }

// harms are those to the servers. Each waits for a standby that is still being made.
func (p *replicated) harms() []harm {
	return []harm{
		{"backend killed", 12, anybody(func() error { return p.primary().KillBackend() }), false, true, p.ready},
		{"server stopped at once", 12, anybody(func() error { return errors.Join(p.primary().Stop(true), p.primary().Restart()) }), false, true, p.ready},
		{"server killed", 6, anybody(func() error { return errors.Join(p.primary().Kill(), p.primary().Restart()) }), false, true, p.ready},
		{"server hangs", 4, anybody(p.hang), true, true, p.ready},
		{"store cut off", 6, anybody(func() error { return cutFor(p.links[p.lead]) }), true, true, p.ready},
		{"standby promoted", 2, anybody(p.promote), false, true, p.ready},
	}
}

// ready returns when there are two standbys that follow.
func (p *replicated) ready() error {
	<-p.whole
	return p.primary().Followed(2)
}

func (p *replicated) hang() error {
	resume, err := p.primary().Hang()
	if err != nil {
		return err
	}
	time.Sleep(rand.N(3 * time.Second))
	return resume()
}

// promote kills the primary and has the standby take its place that has more of its log. The other one follows that, and a
// new one is made, of which nobody waits for the end.
func (p *replicated) promote() error {
	if err := p.primary().Kill(); err != nil {
		return err
	}
	old := p.lead
	next, other := (old+1)%3, (old+2)%3
	all := p.servers()
	here, err1 := all[next].Received()
	there, err2 := all[other].Received()
	if there > here {
		next, other = other, next
	}
	if err := errors.Join(err1, err2, all[other].Follow(all[next]), all[next].Promote()); err != nil {
		return err
	}
	p.lead, p.whole = next, make(chan struct{})
	go p.replace(old, all[next], p.whole)
	return nil
}

// replace makes another standby in the place of a server that was killed.
func (p *replicated) replace(i int, primary *pgtest.Cluster, done chan<- struct{}) {
	defer close(done)
	_ = p.servers()[i].Close() // its files; it was killed, and says so
	c, err := primary.NewStandby()
	if err != nil {
		p.t.Error(err)
		return
	}
	p.mu.Lock()
	p.each[i] = c
	p.mu.Unlock()
	p.links[i].Lead(c.Addr())
}

// probe notes when the database itself commits again, whatever the gateways do.
func (p *replicated) probe(primary *pgtest.Cluster, r *recovery) {
	for primary.Commit(patience) != nil {
		select {
		case <-r.done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	r.commits.Store(time.Now().UnixNano())
}

// slow is from when on the log of a run says what the servers wrote during a recovery.
const slow = 2 * time.Second

// logs notes where the servers' logs end, and returns what is in them since the last time.
func (p *replicated) logs() (text string) {
	ends := map[*pgtest.Cluster]int64{}
	for i, c := range p.servers() {
		lines, end := c.Log(p.read[c])
		text += fmt.Sprintf("server %d:\n%s", i, lines)
		ends[c] = end
	}
	p.read = ends
	return text
}
