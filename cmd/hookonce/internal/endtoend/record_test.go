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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/internal/testskip"
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
// of it is never taken for new, and an application that claims what it is told has each effect once. The store is held against
// both, and every gateway has to come back from what is done to it.
func TestRecord(t *testing.T) {
	testskip.Long(t)
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
	stop     chan struct{} // closed when no more events are to be sent
	halt     func()        // closes it
	gateways []*member
	ports    []int
	doors    []*cutproxy.Link // sender to gateway
	shops    [2]*cutproxy.Link
	serve    []string // arguments of the program
	dsn      string   // of the store, as database/sql opens it
	pg       *replicated
	full     func() error // fills the disk for a moment; nil: it cannot
	faults   map[string]int
}

// recordLease is that of deliveries.
const recordLease = 3 * time.Second

const recordConfig = `
store: %q
retention: {bodies: 1h, attempts: 1d} # attempts are counted in the end
delivery: {backoff: 50ms, lease: %v}
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
	s.stop = make(chan struct{})
	s.halt = sync.OnceFunc(func() { close(s.stop) })
	file := filepath.Join(s.dir, "hookonce.db")
	store, gateways := "sqlite:"+file, 1
	s.dsn = "file:" + file + "?mode=ro&_pragma=busy_timeout(10000)"
	if primary != nil {
		s.dsn = s.replicate(primary)
		store, gateways = s.dsn, 3
	} else {
		s.full = smallDisk(t, s.dir)
	}
	for i, server := range []string{s.counting.URL, s.claiming.URL} {
		s.shops[i] = cutproxy.NewLink(t, strings.TrimPrefix(server, "http://"))
	}
	file = filepath.Join(s.dir, "hookonce.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, recordConfig, store, recordLease, s.shops[0].Addr(), s.shops[1].Addr()), 0o600); err != nil {
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
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(look) {
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

// harm is one way to do it. It returns the gateway that the sender waits for; negative: any.
type harm struct {
	name   string
	weight int
	do     func() (gateway int, err error)
	lasts  bool         // until do returns: what recovers does so from then on
	store  bool         // the database is harmed, and not a gateway or what leads to it
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
		{"gateway killed", 40, one(s.kill), false, false, nil},
		{"gateway stopped beyond its leases", 4, one(s.freeze), true, false, nil},
		{"sender cut off", 8, one(func(i int) error { return cutFor(s.doors[i]) }), true, false, nil},
		{"destination cut off", 6, anybody(func() error { return cutFor(s.shops[rand.IntN(2)]) }), true, false, nil},
		{"destinations answer 500", 4, anybody(s.sicken), true, false, nil},
	}
	if s.full != nil {
		all = append(all, harm{"disk full", 10, anybody(s.full), true, false, nil})
	}
	if s.pg != nil {
		all = append(all, s.pg.harms()...)
	}
	return all
}

func (s *stage) kill(i int) error {
	if err := s.gateways[i].kill(); err != nil {
		return fmt.Errorf("gateway %d: %w", i, err)
	}
	s.read(i)
	began := time.Now()
	if err := s.launch(i); err != nil {
		return fmt.Errorf("gateway %d does not start again: %w", i, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts.Record(time.Since(began))
	return nil
}

// read looks at what the gateway in a place has written until it ended.
func (s *stage) read(i int) {
	if err := s.gateways[i].amiss(); err != nil {
		s.breach("gateway %d: %v", i, err)
	}
}

// running reports whether no gateway has ended by itself.
func (s *stage) running() bool {
	all := true
	for i, g := range s.gateways {
		select {
		case <-g.ended:
			all = false
			s.breach("gateway %d ended by itself: %v\n%s", i, g.err, g.log)
		default:
		}
	}
	return all
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
	var next atomic.Int64
	var senders sync.WaitGroup
	var doors []string
	for _, d := range s.doors {
		doors = append(doors, d.Addr())
	}
	for range 16 {
		senders.Go(func() { s.send(&next, doors, s.stop) })
	}
	end := time.AfterFunc(*recordTime, s.halt)
	sent := make(chan struct{})
	go func() { senders.Wait(); close(sent) }()
	s.adversary(sent)
	<-sent
	end.Stop()
	took := time.Since(began)
	s.rollCall(doors, patience)
	s.tell()
	s.awaitAll(patience)
	lost := s.acked.missing(s.delivered) // before anything that was forgotten is found by who starts anew
	if s.restart() && s.rollCall(doors, patience) {
		s.recall(doors)
		s.awaitAll(patience)
	}
	s.judge(began, took, lost)
}

// restart kills all gateways and starts them again, and reports whether that went well.
func (s *stage) restart() bool {
	defer s.disturb()()
	if !s.running() {
		return false
	}
	for i := range s.gateways {
		if err := s.kill(i); err != nil {
			s.breach("%v", err)
			return false
		}
	}
	return true
}

// adversary does one harm after the other, evenly among the events, until all are sent. The next waits until all gateways
// acknowledge again. Where one does not, there is no further harm, and no further event.
func (s *stage) adversary(sent <-chan struct{}) {
	harms := s.harms()
	total := 0
	for _, h := range harms {
		total += h.weight
	}
	for done := 0; s.await(sent, func() bool { return s.acked.count.Load() >= int64(done+1)*int64(s.load)/int64(*recordFaults+1) }); done++ {
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

// harm does one harm, and waits until all gateways recovered from it. It reports false when all events were sent before, or
// one does not.
func (s *stage) harm(h harm, sent <-chan struct{}) bool {
	s.tell()
	if !s.running() {
		s.halt()
		return false
	}
	if h.ready != nil {
		if err := h.ready(); err != nil {
			s.t.Fatalf("%s: %v", h.name, err)
		}
	}
	defer s.disturb()()
	since := time.Now()
	gateway, err := h.do()
	if err != nil {
		s.breach("%s: %v", h.name, err)
		s.halt()
		return false
	}
	s.faults[h.name]++
	over := time.Now()
	if h.lasts {
		since = over
	}
	r := newRecovery(h.name, since, over, gateway, len(s.gateways), h.store)
	s.recovering.Store(r)
	if h.store {
		go s.pg.probe(s.pg.primary(), r)
	}
	return s.recovers(r, sent, 2*patience)
}

// recovers waits until all gateways recovered. It reports false when all events were sent before, whereupon the roll is called, or
// when that takes too long.
func (s *stage) recovers(r *recovery, sent <-chan struct{}, within time.Duration) bool {
	select {
	case <-r.done:
		return true
	case <-sent:
		return false
	case <-time.After(within):
		s.breach("%s: %v later these gateways acknowledge nothing: %v", r.fault, within, r.waiting())
		s.halt()
		return false
	}
}

// tell writes where the time of the last recovery went.
func (s *stage) tell() {
	logs := ""
	if s.pg != nil {
		logs = s.pg.logs()
	}
	r := s.recovering.Load()
	if r == nil || r.silent.Load() > 0 {
		return
	}
	took, everywhere, own := r.took()
	if took < slow {
		logs = ""
	}
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	s.t.Logf("%s %s: the harm itself took %v, recovery %v, at all gateways %v, of which %v when all that they need was there\n%s",
		r.since.UTC().Format("15:04:05.000"), r.fault, ms(r.over.Sub(r.since)), ms(took), ms(everywhere), ms(own), logs)
}

// promptly is how soon every gateway acknowledges once all that it needs is there, and startsWithin how soon one is there that
// was killed. It takes them a tenth of a second; the rest is for a machine that has a little else to do. Beside other tests,
// whose load nobody knows, a gateway only has to come back at all.
const (
	promptly     = 3 * time.Second
	startsWithin = 15 * time.Second
)

// record is what a run came to.
type record struct {
	Began       time.Time      `json:"began"`
	Machine     string         `json:"machine"`
	Command     string         `json:"command"`
	Store       string         `json:"store"`
	Seconds     int            `json:"seconds"`
	Events      int64          `json:"events"`           // that were acknowledged
	Refused     int64          `json:"refused"`          // tries that were not
	Copies      int64          `json:"copies"`           // of events that were acknowledged
	Recalled    int64          `json:"recalled"`         // of them, those sent in the end, to gateways with nothing in their memory
	Repeats     int64          `json:"repeats"`          // deliveries to the destination that claims nothing
	Unexplained int64          `json:"unexplained"`      // of them, those without a harm that may be the reason
	Effects     int64          `json:"effects"`          // in the application that claims
	Lost        int            `json:"lost"`             // acknowledged and never delivered
	Doubled     int64          `json:"doubled"`          // effects that the application had once more
	TakenAnew   int64          `json:"taken_anew"`       // copies that were taken for new
	OtherKey    int64          `json:"other_key"`        // deliveries under another Idempotency-Key than the event's, or with another body
	Stored      *holdings      `json:"stored,omitempty"` // what the store had in the end
	Broken      []string       `json:"broken,omitempty"` // what else was not as it must be
	Faults      map[string]int `json:"faults"`
	Settings    []string       `json:"settings,omitempty"` // of the servers, which are not PostgreSQL's own
	Recovery    struct {
		traffic.Quantiles
		Count uint64                   `json:"count"`
		Worst map[string]time.Duration `json:"worst_ns"` // of each kind of fault
	} `json:"recovery"` // from a fault, or the end of one that lasts, to the next acknowledgement
	Everywhere *traffic.Quantiles `json:"everywhere,omitempty"`  // the same to the acknowledgement of the last of all gateways
	AfterStore *traffic.Quantiles `json:"after_store,omitempty"` // where the database was harmed: what of it came after it committed again
	Starts     *traffic.Quantiles `json:"starts,omitempty"`      // of gateways that were killed, until they listened
}

// lost and doubled are what the page says of a run.
func (r *record) lost() int64 { return int64(r.Lost) + r.stored().Lost }

func (r *record) doubled() int64 {
	h := r.stored()
	return r.Doubled + r.TakenAnew + r.OtherKey + r.Unexplained + h.Twice + h.Strange + h.DoneTwice + h.AfterDone
}

// stored is what the store had in the end. Runs that did not ask it have nothing of it.
func (r *record) stored() holdings {
	if r.Stored == nil {
		return holdings{}
	}
	return *r.Stored
}

// command returns how such a run is made.
func (s *stage) command() string {
	only := "sqlite"
	if s.pg != nil {
		only = "postgres"
	}
	return fmt.Sprintf("make record ONLY=%s RECORD=%d FAULTS=%d FOR=%v MAJOR=%d", only, *recordEvents, *recordFaults, *recordTime, *recordMajor)
}

// judge stops the gateways, so that nothing happens any more, and holds both ends and the store against each other.
func (s *stage) judge(began time.Time, took time.Duration, lost []int) {
	db, prefix, err := s.open()
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	s.settle(db, prefix, patience)
	for i, g := range s.gateways {
		if err := g.end(syscall.SIGTERM); err != nil {
			s.breach("gateway %d, the last stop: %v", i, err)
		}
		s.read(i)
	}
	r := record{Began: began.UTC().Truncate(time.Second), Machine: fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()),
		Command: s.command(), Store: "SQLite", Seconds: int(took.Seconds()), Faults: s.faults}
	if s.pg != nil {
		if r.Store, err = s.pg.primary().Version(); err != nil {
			s.t.Error(err)
		}
		r.Settings = recordSettings()
	}
	if r.Stored, err = s.holdings(db, prefix); err != nil {
		s.t.Fatal(err)
	}
	s.book(&r, lost)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%s", text)
	for _, fault := range r.wrong() {
		s.t.Error(fault)
	}
	if s.t.Failed() {
		s.t.Logf("lost are %v", lost[:min(len(lost), 10)])
		for i, g := range s.gateways {
			s.t.Logf("gateway %d: %s", i, g.log)
		}
	}
	if *recordFile == "" {
		return
	}
	if err := appendRecord(*recordFile, r); err != nil {
		s.t.Error(err)
	}
}

// book writes both ends of a run into its record. Lost are the events that were missing before the gateways began anew.
func (a *accounts) book(r *record, lost []int) {
	r.Effects, r.Doubled = a.claims()
	for _, n := range a.acked.missing(a.delivered) {
		if !slices.Contains(lost, n) {
			lost = append(lost, n)
		}
	}
	r.Lost = len(lost)
	r.Events, r.Refused, r.Copies, r.Recalled = a.acked.count.Load(), a.tries.Load(), a.copies.Load(), a.recalled.Load()
	r.Repeats, r.Unexplained, r.TakenAnew, r.OtherKey = a.repeats.Load(), a.unexplained.Load(), a.again.Load(), a.strange.Load()
	if !a.alone {
		r.Unexplained = 0 // a gateway that the machine does not let run loses its leases
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Recovery.Quantiles, r.Recovery.Count, r.Recovery.Worst = a.recovered.Quantiles(), a.recovered.Count(), a.worst
	everywhere, starts := a.everywhere.Quantiles(), a.starts.Quantiles()
	r.Everywhere, r.Starts = &everywhere, &starts
	if a.afterStore.Count() > 0 {
		after := a.afterStore.Quantiles()
		r.AfterStore = &after
	}
	if a.alone && a.late > promptly {
		a.broken = append(a.broken, fmt.Sprintf("a gateway acknowledged %v after all that it needs was there, which may take %v", a.late, promptly))
	}
	if late := a.starts.Max(); a.alone && late > startsWithin {
		a.broken = append(a.broken, fmt.Sprintf("a gateway that was killed took %v to start, which may take %v", late, startsWithin))
	}
	r.Broken = a.broken
}

// wrong says what a run must not come to.
func (r *record) wrong() (faults []string) {
	h := r.stored()
	for _, count := range []struct {
		n    int64
		what string
	}{
		{int64(r.Lost), "events lost"},
		{r.Doubled, "effects doubled"},
		{r.TakenAnew, "copies taken for new"},
		{r.OtherKey, "deliveries under another key, or with another body"},
		{r.Unexplained, "deliveries repeated although nothing was harmed"},
		{h.Lost, "events acknowledged that the store does not know"},
		{h.Twice, "events stored twice"},
		{h.Strange, "events stored that nobody sent"},
		{h.Open, "deliveries still to be made"},
		{h.Unfinished, "events delivered without a word of it on record"},
		{h.DoneTwice, "deliveries twice on record as done"},
		{h.AfterDone, "events delivered again after that was on record as done"},
	} {
		if count.n > 0 {
			faults = append(faults, fmt.Sprintf("%d %s", count.n, count.what))
		}
	}
	for _, of := range []struct {
		n    int64
		what string
	}{
		{r.Events, "events"}, {int64(len(r.Faults)), "harm"}, {int64(r.Recovery.Count), "recoveries"}, {r.Effects, "effects"},
		{r.Copies - r.Recalled, "copies under load"}, {r.Recalled, "copies in the end"}, {h.Rows, "events in the store"},
	} {
		if of.n == 0 {
			faults = append(faults, "nothing was tried: no "+of.what)
		}
	}
	return append(faults, r.Broken...)
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
