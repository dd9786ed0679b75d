package endtoend

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
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
		primary := pgtest.Start(t, pgtest.Options{Fsync: true, Major: *recordMajor, Settings: recordSettings()})
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
	lasts  bool         // until do returns: what recovers does so from then on
	ready  func() error // what is waited for before it; nil: nothing
}

// anybody is a harm that any gateway recovers from.
func anybody(f func() error) func() (int, error) { return func() (int, error) { return -1, f() } }

// harms are those that this run knows.
func (s *stage) harms() []harm {
	one := func(f func(i int) error) func() (int, error) {
		return func() (int, error) { i := rand.IntN(len(s.gateways)); return i, f(i) }
	}
	all := []harm{
		{"gateway killed", 40, one(s.kill), false, nil},
		{"gateway stopped beyond its leases", 4, one(s.freeze), true, nil},
		{"sender cut off", 8, one(func(i int) error { return cutFor(s.doors[i]) }), true, nil},
		{"destination cut off", 6, anybody(func() error { return cutFor(s.shops[rand.IntN(2)]) }), true, nil},
		{"destinations answer 500", 4, anybody(s.sicken), true, nil},
	}
	if s.full != nil {
		all = append(all, harm{"disk full", 10, anybody(s.full), true, nil})
	}
	if s.pg != nil {
		all = append(all, s.pg.harms()...)
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
	for i := range s.gateways {
		if err := s.kill(i); err != nil {
			s.t.Fatal(err)
		}
	}
	s.recall(doors)
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
	if h.ready != nil {
		if err := h.ready(); err != nil {
			s.t.Fatalf("%s: %v", h.name, err)
		}
	}
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
		go s.pg.probe(s.pg.primary(), r)
	}
	select {
	case <-r.done:
	case <-sent:
		return false
	}
	return true
}

// tell writes where the time of the last recovery went, as far as that is known by now.
func (s *stage) tell() {
	logs := ""
	if s.pg != nil {
		logs = s.pg.logs()
	}
	r := s.recovering.Load()
	if r == nil {
		return
	}
	all, own := r.took()
	everywhere, ok := r.everywhere()
	s.mu.Lock()
	if ok {
		s.everywhere.Record(everywhere)
	}
	s.mu.Unlock()
	if all < slow {
		logs = ""
	}
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	s.t.Logf("%s %s: the harm itself took %v, recovery %v, of which %v after the database committed again; %v at all gateways (%t)\n%s",
		r.since.UTC().Format("15:04:05.000"), r.fault, ms(r.over.Sub(r.since)), ms(all), ms(own), ms(everywhere), ok, logs)
}

// promptly is how soon gateways acknowledge once the database commits again. It takes them a tenth of a second; the rest is for a
// machine that is busy with other tests.
const promptly = 3 * time.Second

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
	Recalled  int64          `json:"recalled"`   // of them, those sent in the end, to gateways with nothing in their memory
	Repeats   int64          `json:"repeats"`    // deliveries to the destination that claims nothing
	Effects   int64          `json:"effects"`    // in the application that claims
	Lost      int            `json:"lost"`       // acknowledged and never delivered
	Doubled   int64          `json:"doubled"`    // effects that the application had once more
	TakenAnew int64          `json:"taken_anew"` // copies that were taken for new
	OtherKey  int64          `json:"other_key"`  // deliveries under another Idempotency-Key than the event's
	Faults    map[string]int `json:"faults"`
	Settings  []string       `json:"settings,omitempty"` // of the servers, which are not PostgreSQL's own
	Recovery  struct {
		traffic.Quantiles
		Count uint64                   `json:"count"`
		Worst map[string]time.Duration `json:"worst_ns"` // of each kind of fault
	} `json:"recovery"` // from a fault, or the end of one that lasts, to the next acknowledgement
	AfterStore *traffic.Quantiles `json:"after_store,omitempty"` // the part of it that came after the database committed again
	Everywhere *traffic.Quantiles `json:"everywhere,omitempty"`  // the same to the acknowledgement of the last of all gateways
}

// command returns how such a run is made.
func (s *stage) command() string {
	only := "sqlite"
	if s.pg != nil {
		only = "postgres"
	}
	return fmt.Sprintf("make record ONLY=%s RECORD=%d FAULTS=%d FOR=%v MAJOR=%d", only, *recordEvents, *recordFaults, *recordTime, *recordMajor)
}

func (s *stage) judge(began time.Time, took time.Duration) {
	r := record{Began: began.UTC().Truncate(time.Second), Machine: fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()),
		Command: s.command(), Store: "SQLite", Seconds: int(took.Seconds()), Events: s.acked.count.Load(), Refused: s.tries.Load(),
		Copies: s.copies.Load(), Recalled: s.recalled.Load(), Repeats: s.repeats.Load(), TakenAnew: s.again.Load(), OtherKey: s.strange.Load(), Faults: s.faults}
	if s.pg != nil {
		var err error
		if r.Store, err = s.pg.primary().Version(); err != nil {
			s.t.Error(err)
		}
		own, everywhere := s.own.Quantiles(), s.everywhere.Quantiles()
		r.Settings, r.AfterStore, r.Everywhere = recordSettings(), &own, &everywhere
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
	if late := s.own.Max(); late > promptly {
		s.t.Errorf("a gateway acknowledged %v after the database committed again, which may take %v", late, promptly)
	}
	if s.acked.count.Load() == 0 || len(s.faults) == 0 || r.Effects == 0 || r.Recalled == 0 {
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
