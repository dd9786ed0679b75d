package year

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/journal"
)

// machine runs a gateway, and another one when that ends.
type machine struct {
	*world
	name   string
	number int
	site   *site
	told   atomic.Int64 // which of the maps its file has
	draft  *drawn       // that its file has in place of those; nil: none
	skew   atomic.Int64 // of its clock, in nanoseconds
	faults faults
	away   atomic.Int64 // until when it cannot reach the store, in Unix nanoseconds

	state   sync.Mutex
	changed *sync.Cond
	wanted  bool
	over    bool
	rest    time.Duration // after a death
	grace   time.Duration // that the next stop has; 0: as usual
	current *process
}

func (w *world) newMachine(number int) *machine {
	m := &machine{world: w, name: gatewayName(number), number: number, site: w.sites[w.plan.cellOf(number)]}
	m.changed = sync.NewCond(&m.state)
	return m
}

// now is its clock.
func (m *machine) now() time.Time { return time.Now().Add(time.Duration(m.skew.Load())) }

// up has a gateway run, and down has it stop as an upgrade stops it.
func (m *machine) up() { m.want(true, false) }

func (m *machine) down() {
	m.want(false, false)
	m.state.Lock()
	defer m.state.Unlock()
	if m.current != nil {
		m.current.ask()
	}
}

func (m *machine) want(wanted, over bool) {
	m.state.Lock()
	defer m.state.Unlock()
	m.wanted, m.over = wanted, m.over || over
	m.changed.Broadcast()
}

// kill has the process die now, and another one begin after a rest.
func (m *machine) kill(why string, rest time.Duration) {
	m.state.Lock()
	m.rest = rest
	p := m.current
	m.state.Unlock()
	if p != nil {
		p.die(why)
	}
}

// stamped checks that a call of the store has the time of this machine.
func (p *process) stamped(op string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if off := p.now().Sub(at).Abs(); off > time.Minute && !p.isDead() && !p.disturbed(time.Now(), 2*time.Minute, 0, "clock/") {
		p.breaksLocked("one clock", "%s calls %s with another clock's time, %v off", p.identity(), op, off)
	}
}

// supervise runs one process after another until the machine is over.
func (m *machine) supervise() {
	for life := 1; ; life++ {
		m.state.Lock()
		for !m.wanted && !m.over {
			m.changed.Wait()
		}
		if m.over {
			m.state.Unlock()
			return
		}
		p := &process{machine: m, life: life, dead: make(chan struct{}), asked: make(chan struct{})}
		m.current, m.rest = p, time.Second
		m.state.Unlock()
		p.run()
		m.state.Lock()
		m.current = nil
		rest := m.rest
		m.state.Unlock()
		time.Sleep(rest)
	}
}

// process is one run of a gateway.
type process struct {
	*machine
	life  int // of the machine, from 1
	dead  chan struct{}
	death sync.Once
	asked chan struct{}
	ends  sync.Once
}

// identity is what it is called in the ledger.
func (p *process) identity() string { return p.name + "/" + strconv.Itoa(p.life) }

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// die ends the process: nothing that its goroutines do from now on reaches anything.
func (p *process) die(why string) {
	p.death.Do(func() {
		close(p.dead)
		p.network.drop(p.name)
		p.fired("process/dies")
		p.log(p.name, "dies "+why)
	})
}

// ask has it stop.
func (p *process) ask() { p.ends.Do(func() { close(p.asked) }) }

func (p *process) partedFromStore() bool { return time.Now().UnixNano() < p.away.Load() }

// run runs the gateway until it is asked to stop, or dies.
func (p *process) run() {
	cfg, err := p.load()
	if err != nil {
		panic(fmt.Sprintf("the configuration of the simulation: %v", err))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	g, err := gateway.Start(ctx, cfg, p.options())
	cancel()
	if err != nil {
		p.log(p.name, "does not start: "+err.Error())
		p.death.Do(func() { close(p.dead) })
		p.network.drop(p.name)
		return
	}
	p.count("process/starts")
	p.log(p.name, fmt.Sprintf("process %d runs", p.life))
	select {
	case <-p.dead:
		p.tasks.Go(func() { // its goroutines end as well, and reach nothing meanwhile
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = g.Close(ended)
		})
	case <-p.asked:
		p.fired("process/is-stopped") // which may cut attempts off
		ctx, cancel := context.WithTimeout(context.Background(), p.patience())
		err := g.Close(ctx)
		cancel()
		p.fired("process/stops")
		p.log(p.name, fmt.Sprintf("stopped: %v", err))
		p.death.Do(func() { close(p.dead) })
		p.network.drop(p.name)
	}
}

// patience is how long a stop may take.
func (p *process) patience() time.Duration {
	p.state.Lock()
	defer p.state.Unlock()
	grace := cmp.Or(p.grace, 20*time.Second)
	p.grace = 0
	return grace
}

// load reads the configuration as it is at the moment.
func (p *process) load() (*config.Config, error) {
	return config.Load(config.Input{Path: "hookonce.yaml", Data: configuration(p.number, int(p.variant.Load()), p.cellText()), ReadFile: file, Environ: environment, Now: p.now})
}

func (p *process) options() gateway.Options {
	return gateway.Options{
		Logger: slog.New(p.handler()), Version: "(simulated)", Registry: prometheus.NewRegistry(), Now: p.now, Load: p.load,
		Listen: func(_, address string) (net.Listener, error) {
			if p.isDead() {
				return nil, errDead
			}
			return p.network.listen(p.name, address)
		},
		Dial:  p.dial,
		Store: p.openStore,
	}
}

// openStore opens the store for the process, and what tells it of work if there are others.
func (p *process) openStore(ctx context.Context) (*gateway.OpenedStore, error) {
	store, last, err := p.site.store.open(ctx)
	if err != nil {
		return nil, err
	}
	if p.plan.File {
		return &gateway.OpenedStore{Store: &disk{store, p, true}, IDs: journal.NewIDs(0, last)}, nil
	}
	d := &disk{store, p, false}
	opened := &gateway.OpenedStore{Store: d, Notifier: &bell{p, d}, IDs: journal.NewIDs(p.writer(), 0)}
	if p.site.name != "" {
		opened.Store = &cellDisk{d, p.site.keeper()}
	}
	return opened, nil
}

// bell tells processes on the store of work.
type bell struct {
	p *process
	d *disk
}

// Notify implements [journal.Notifier].
func (b *bell) Notify(ctx context.Context) error {
	return do(ctx, b.d, "notify", func(context.Context) error {
		b.p.site.hub.ring()
		return nil
	})
}

// Listen implements [journal.Notifier].
func (b *bell) Listen(ctx context.Context, heard func()) {
	rings := b.p.site.hub.join()
	defer b.p.site.hub.leave(rings)
	for {
		select {
		case <-rings:
			if !b.p.isDead() && !b.p.partedFromStore() {
				heard()
			}
		case <-ctx.Done():
			return
		}
	}
}

// hub has those who listen.
type hub struct {
	mu    sync.Mutex
	rings map[chan struct{}]bool
}

func (h *hub) join() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan struct{}, 1)
	h.rings[c] = true
	return c
}

func (h *hub) leave(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.rings, c)
}

func (h *hub) ring() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.rings {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// handler writes what a gateway logs into the trace.
func (p *process) handler() slog.Handler { return &logHandler{p: p} }

type logHandler struct{ p *process }

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	if h.p.isDead() {
		return nil
	}
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	h.p.log(h.p.name, line)
	if strings.Contains(line, "panic") {
		h.p.breaks("nothing panics", "%s: %s", h.p.identity(), line)
	}
	return nil
}

func (h *logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *logHandler) WithGroup(string) slog.Handler      { return h }
