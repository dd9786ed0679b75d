package endtoend

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/internal/traffic"
)

var (
	recordEvents = flag.Int("record", 3000, "how many events each run of TestRecord has")
	recordFaults = flag.Int("record.faults", 8, "how many faults there are in each run of TestRecord")
	recordTime   = flag.Duration("record.for", time.Hour, "longest time for the load of a run of TestRecord")
	recordMajor  = flag.Int("record.major", 0, "major version of PostgreSQL for TestRecord; 0: as with all tests")
	recordFile   = flag.String("record.json", "", "file with a list that each run of TestRecord is added to")
)

// TestRecord runs the real program under load and harms everything that it stands on, for as long as it is told: make record.
// The sender and both destinations keep a bit for each event. Nothing that was acknowledged may be missing in the end, a copy
// of it is never taken for new, and an application that claims what it is told has each effect once.
func TestRecord(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { newStage(t, nil).run() })
	t.Run("postgres", func(t *testing.T) {
		primary := pgtest.Start(t, pgtest.Options{Fsync: true, Major: *recordMajor, Settings: []string{"max_wal_size = 2GB", "log_startup_progress_interval = 100ms"}})
		newStage(t, primary).run()
	})
}

// stage is a run: the program, what it stands on, and who harms it.
type stage struct {
	*accounts
	dir      string
	gateways []*member
	ports    []int
	doors    []*cutproxy.Link // sender to gateway
	shops    [2]*cutproxy.Link
	serve    []string // arguments of the program
	pg       *replicated
	full     func() error // fills the disk for a moment; nil: it cannot
	faults   map[string]int
	marks    []int64 // where the servers' logs ended when the last harm began
}

// replicated is a Postgres whose commits wait for a standby, both behind links that stay when the servers change.
type replicated struct {
	primary, standby *pgtest.Cluster
	links            [2]*cutproxy.Link
	first            int // the link that leads to the primary
}

const recordConfig = `
store: %q
retention: {bodies: 1h, attempts: 1h}
delivery: {backoff: 50ms, lease: 3s}
destinations:
  - {name: counting, url: "http://%s/"}
  - {name: claiming, url: "http://%s/webhooks", secrets: [` + killSecret + `]}
sources:
  - {name: orders, provider: hmac, secrets: [` + killSecret + `], routes: [{to: counting}]}
  - {name: claims, provider: hmac, secrets: [` + killSecret + `], routes: [{to: claiming}]}
`

// newStage launches one gateway on SQLite, or three on Postgres.
func newStage(t *testing.T, primary *pgtest.Cluster) *stage {
	s := &stage{accounts: newAccounts(t, *recordEvents), dir: t.TempDir(), faults: map[string]int{}}
	store, gateways := "sqlite:"+filepath.Join(s.dir, "hookonce.db"), 1
	if primary != nil {
		store, gateways = s.replicate(primary), 3
	} else {
		s.full = smallDisk(t, s.dir)
	}
	for i, server := range []string{s.counting.URL, s.claiming.URL} {
		s.shops[i] = cutproxy.NewLink(t, strings.TrimPrefix(server, "http://"))
	}
	file := filepath.Join(s.dir, "hookonce.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, recordConfig, store, s.shops[0].Addr(), s.shops[1].Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.serve = []string{"serve", "--config", file, "--admin", "127.0.0.1:0", "--listen"}
	for i := range gateways {
		port, err := throwaway.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s.ports = append(s.ports, port)
		s.doors = append(s.doors, cutproxy.NewLink(t, fmt.Sprintf("127.0.0.1:%d", port)))
		s.gateways = append(s.gateways, nil)
		if err := s.launch(i); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, g := range s.gateways {
			g.cmd.Process.Kill() // which fails if it ended before
			<-g.ended
		}
	})
	return s
}

// launch starts the gateway in a place. While what it needs is away it does not start, and is started again.
func (s *stage) launch(i int) error {
	var err error
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var p *process
		if p, err = launch(s.dir, os.Environ(), append(s.serve, fmt.Sprintf("127.0.0.1:%d", s.ports[i]))...); err == nil {
			s.gateways[i] = &member{process: p}
			return nil
		}
	}
	return err
}

// replicate has a standby follow, and returns the store's connection string.
func (s *stage) replicate(primary *pgtest.Cluster) string {
	dsn, err := url.Parse(primary.DSN(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	s.pg = &replicated{primary: primary, standby: primary.Standby(s.t)}
	s.pg.links[0] = cutproxy.NewLink(s.t, s.pg.primary.Addr())
	s.pg.links[1] = cutproxy.NewLink(s.t, s.pg.standby.Addr())
	dsn.Host = s.pg.links[0].Addr() + "," + s.pg.links[1].Addr()
	dsn.RawQuery += "&target_session_attrs=read-write&connect_timeout=2"
	return dsn.String()
}

// smallDisk puts the folder on a disk of its own, in memory, and returns what fills it for a moment; nil where this user may
// not mount one.
func smallDisk(t *testing.T, dir string) func() error {
	if runtime.GOOS != "linux" || exec.Command("mount", "-t", "tmpfs", "-o", "size=6g,mode=700", "tmpfs", dir).Run() != nil {
		return nil
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	balloon := filepath.Join(dir, "balloon")
	return func() error {
		var st syscall.Statfs_t
		f, err := os.Create(balloon)
		if err != nil {
			return err
		}
		defer os.Remove(balloon)
		defer f.Close()
		for range 3 { // others take what is left, and give it back
			if err := syscall.Statfs(dir, &st); err != nil {
				return err
			}
			at, err := f.Seek(0, 2)
			if err == nil && st.Bavail > 0 {
				err = syscall.Fallocate(int(f.Fd()), 0, at, int64(st.Bavail)*st.Bsize)
			}
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				return err
			}
			time.Sleep(300 * time.Millisecond)
		}
		return nil
	}
}

// harm is one way to do it. It returns the gateway that has to come back; negative: any.
type harm struct {
	name   string
	weight int
	do     func() (gateway int, err error)
	lasts  bool // until do returns: what recovers does so from then on
}

// harms are those that this run knows.
func (s *stage) harms() []harm {
	any := func(f func() error) func() (int, error) { return func() (int, error) { return -1, f() } }
	one := func(f func(i int) error) func() (int, error) {
		return func() (int, error) { i := rand.IntN(len(s.gateways)); return i, f(i) }
	}
	all := []harm{
		{"gateway killed", 40, one(s.kill), false},
		{"gateway stopped beyond its leases", 4, one(s.freeze), true},
		{"sender cut off", 8, one(func(i int) error { return cutFor(s.doors[i]) }), true},
		{"destination cut off", 6, any(func() error { return cutFor(s.shops[rand.IntN(2)]) }), true},
		{"destinations answer 500", 4, any(s.sicken), true},
	}
	if s.full != nil {
		all = append(all, harm{"disk full", 10, any(s.full), true})
	}
	if s.pg != nil {
		all = append(all,
			harm{"backend killed", 12, any(s.killBackend), false},
			harm{"server stopped at once", 12, any(s.restart), false},
			harm{"server killed", 6, any(s.killServer), false},
			harm{"server hangs", 4, any(s.hang), true},
			harm{"store cut off", 6, any(func() error { return cutFor(s.pg.links[s.pg.first]) }), true},
			harm{"standby promoted", 2, any(s.promote), false})
	}
	return all
}

func (s *stage) kill(i int) error {
	if err := s.gateways[i].signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = s.gateways[i].wait() // it was killed, and says so
	return s.launch(i)
}

func (s *stage) freeze(i int) error {
	if err := s.gateways[i].signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(4 * time.Second) // a lease has three
	return s.gateways[i].signal(syscall.SIGCONT)
}

func cutFor(l *cutproxy.Link) error {
	l.Cut()
	time.Sleep(rand.N(1500 * time.Millisecond))
	l.Mend()
	return nil
}

func (s *stage) sicken() error {
	s.ill.Store(true)
	time.Sleep(rand.N(time.Second))
	s.ill.Store(false)
	return nil
}

// killBackend has the server end all others and recover.
func (s *stage) killBackend() error { return s.pg.primary.KillBackend() }

func (s *stage) restart() error {
	return errors.Join(s.pg.primary.Stop(true), s.pg.primary.Restart())
}

func (s *stage) killServer() error {
	return errors.Join(s.pg.primary.Kill(), s.pg.primary.Restart())
}

func (s *stage) hang() error {
	resume, err := s.pg.primary.Hang()
	if err != nil {
		return err
	}
	time.Sleep(rand.N(3 * time.Second))
	return resume()
}

// servers are those that run.
func (p *replicated) servers() []*pgtest.Cluster { return []*pgtest.Cluster{p.primary, p.standby} }

// probe notes when the database itself commits again, whatever the gateways do.
func (p *replicated) probe(r *recovery) {
	primary := p.primary
	for {
		select {
		case <-r.done:
			return
		default:
		}
		if primary.Commit(10*time.Second) == nil {
			r.commits.Store(time.Now().UnixNano())
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// promote kills the primary, has the standby take its place, and another one follow that.
func (s *stage) promote() error {
	if err := errors.Join(s.pg.primary.Kill(), s.pg.standby.Promote()); err != nil {
		return err
	}
	_ = s.pg.primary.Close() // its files; it was killed, and says so
	s.pg.primary = s.pg.standby
	s.pg.standby = s.pg.primary.Standby(s.t)
	s.pg.links[s.pg.first].Lead(s.pg.standby.Addr())
	s.pg.first = 1 - s.pg.first
	return nil
}

// run sends all events, does harm as they go, and judges.
func (s *stage) run() {
	began := time.Now()
	stop := make(chan struct{})
	var next atomic.Int64
	var senders sync.WaitGroup
	var doors []string
	for _, d := range s.doors {
		doors = append(doors, d.Addr())
	}
	for range 16 {
		senders.Go(func() { s.send(&next, doors, stop) })
	}
	end := time.AfterFunc(*recordTime, func() { close(stop) })
	sent := make(chan struct{})
	go func() { senders.Wait(); close(sent) }()
	s.adversary(sent)
	<-sent
	end.Stop()
	took := time.Since(began)
	s.awaitAll(patience)
	s.judge(began, took)
}

// adversary does one harm after the other, evenly among the events, until all are sent. The next waits until somebody
// acknowledges again.
func (s *stage) adversary(sent <-chan struct{}) {
	harms := s.harms()
	total := 0
	for _, h := range harms {
		total += h.weight
	}
	for done := 0; s.await(sent, func() bool { return s.acked.count.Load() >= int64(done+1)*int64(s.n)/int64(*recordFaults+1) }); done++ {
		time.Sleep(rand.N(50 * time.Millisecond))
		pick := rand.IntN(total)
		for _, h := range harms {
			if pick -= h.weight; pick >= 0 {
				continue
			}
			if !s.harm(h, sent) {
				return
			}
			break
		}
	}
}

// await waits until something is so, and reports false when all events were sent before.
func (s *stage) await(sent <-chan struct{}, so func() bool) bool {
	for !so() {
		select {
		case <-sent:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// harm does one harm, and waits until it was recovered from. It reports false when all events were sent before.
func (s *stage) harm(h harm, sent <-chan struct{}) bool {
	s.tell()
	s.marks = s.ends()
	since := time.Now()
	gateway, err := h.do()
	if err != nil {
		s.t.Fatalf("%s: %v", h.name, err)
	}
	s.faults[h.name]++
	r := &recovery{fault: h.name, since: since, over: time.Now(), gateway: gateway,
		gateways: make([]atomic.Int64, len(s.gateways)), done: make(chan struct{})}
	if h.lasts {
		r.since = r.over
	}
	s.recovering.Store(r)
	if s.pg != nil {
		go s.pg.probe(r)
	}
	select {
	case <-r.done:
	case <-sent:
		return false
	}
	return true
}

// slow is from when on the log of a run says what the servers did in a recovery.
const slow = 2 * time.Second

// ends returns how long the servers' logs are.
func (s *stage) ends() (ends []int64) {
	if s.pg != nil {
		for _, c := range s.pg.servers() {
			_, end := c.Log(0)
			ends = append(ends, end)
		}
	}
	return ends
}

// tell writes where the time of the last recovery went.
func (s *stage) tell() {
	r := s.recovering.Load()
	if r == nil {
		return
	}
	all, own := r.took()
	last, everybody := r.everywhere()
	s.t.Logf("%s %s: recovered in %v (the harm itself: %v; after the database committed again: %v; all gateways: %v %v)", r.since.UTC().Format("15:04:05.000"),
		r.fault, all.Round(time.Millisecond), r.over.Sub(r.since).Round(time.Millisecond), own.Round(time.Millisecond), last.Sub(r.since).Round(time.Millisecond), everybody)
	if all < slow || s.pg == nil {
		return
	}
	for i, c := range s.pg.servers() {
		text, _ := c.Log(s.marks[i])
		s.t.Logf("server %d:\n%s", i, text)
	}
}

// record is what a run came to.
type record struct {
	Began     time.Time      `json:"began"`
	Machine   string         `json:"machine"`
	Command   string         `json:"command"`
	Store     string         `json:"store"`
	Seconds   int            `json:"seconds"`
	Events    int64          `json:"events"`     // that were acknowledged
	Refused   int64          `json:"refused"`    // tries that were not
	Copies    int64          `json:"copies"`     // of events that were acknowledged
	Repeats   int64          `json:"repeats"`    // deliveries to the destination that claims nothing
	Effects   int64          `json:"effects"`    // in the application that claims
	Lost      int            `json:"lost"`       // acknowledged and never delivered
	Doubled   int64          `json:"doubled"`    // effects that the application had once more
	TakenAnew int64          `json:"taken_anew"` // copies that were taken for new
	OtherKey  int64          `json:"other_key"`  // deliveries under another Idempotency-Key than the event's
	Faults    map[string]int `json:"faults"`
	Recovery  struct {
		traffic.Quantiles
		Count uint64                   `json:"count"`
		Worst map[string]time.Duration `json:"worst_ns"` // of each kind of fault
	} `json:"recovery"` // from a fault, or the end of one that lasts, to the next acknowledgement
}

func (s *stage) judge(began time.Time, took time.Duration) {
	r := record{Began: began.UTC().Truncate(time.Second), Machine: fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()),
		Command: strings.Join(os.Args[1:], " "), Store: "SQLite", Seconds: int(took.Seconds()), Events: s.acked.count.Load(), Refused: s.tries.Load(),
		Copies: s.copies.Load(), Repeats: s.repeats.Load(), TakenAnew: s.again.Load(), OtherKey: s.strange.Load(), Faults: s.faults}
	if s.pg != nil {
		var err error
		if r.Store, err = s.pg.primary.Version(); err != nil {
			s.t.Error(err)
		}
	}
	lost := s.acked.missing(s.delivered)
	r.Lost = len(lost)
	r.Effects, r.Doubled = s.claims()
	r.Recovery.Quantiles, r.Recovery.Count, r.Recovery.Worst = s.recovered.Quantiles(), s.recovered.Count(), s.worst
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%s", text)
	if r.Lost+int(r.Doubled+r.TakenAnew+r.OtherKey) > 0 {
		s.t.Errorf("%d lost (the first: %v), %d effects doubled, %d copies taken for new, %d under another key", r.Lost, lost[:min(len(lost), 10)], r.Doubled, r.TakenAnew, r.OtherKey)
		for i, g := range s.gateways {
			s.t.Logf("gateway %d: %s", i, g.log)
		}
	}
	if s.acked.count.Load() == 0 || len(s.faults) == 0 || r.Effects == 0 {
		s.t.Errorf("nothing was tried")
	}
	for _, g := range s.gateways {
		if err := g.end(syscall.SIGTERM); err != nil {
			s.t.Errorf("the last stop: %v", err)
		}
	}
	if *recordFile == "" {
		return
	}
	if err := appendRecord(*recordFile, r); err != nil {
		s.t.Error(err)
	}
}

// appendRecord adds a run to those in the file.
func appendRecord(file string, r record) error {
	var all []record
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &all); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	text, err = json.MarshalIndent(append(all, r), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
