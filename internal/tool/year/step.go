package year

import (
	"strconv"
	"strings"
	"time"
)

// step does one step of the plan. What takes time goes on beside the others.
func (w *world) step(s Step) {
	w.log("plan", strings.TrimSpace(strings.Join([]string{s.Do, s.On, s.With, time.Duration(s.For).String(), strconv.Itoa(s.N)}, " ")))
	last := time.Duration(s.For)
	kind, what, _ := strings.Cut(s.Do, "/")
	switch kind {
	case "disk":
		w.machine(s.On).faults.arm(diskFault{op: s.With, kind: what, last: last})
	case "wire":
		w.network.arm(wireFault{link{s.On, s.With}, what, last})
	case "part":
		w.network.part(s.On, s.With, last)
	case "lag":
		w.machine(s.On).faults.lag(time.Duration(s.N)*time.Millisecond, last)
	case "descriptors":
		w.scarce(s.On, last)
	case "away":
		w.machine(s.On).away.Store(time.Now().Add(last).UnixNano())
	case "kill":
		w.machine(s.On).kill("by the plan", last)
	case "upgrade":
		m := w.machine(s.On)
		m.state.Lock()
		m.grace = time.Duration(s.N) * time.Second
		m.state.Unlock()
		m.down()
		w.after(last, func() {
			if time.Now().UnixNano() >= w.night.Load() {
				m.up()
			}
		})
	case "night":
		w.night.Store(time.Now().Add(last).UnixNano())
		w.fired("night")
		for _, m := range w.machines {
			m.down()
			w.after(last, m.up)
		}
	case "clock":
		m := w.machine(s.On)
		m.skew.Store(int64(s.N) * int64(time.Second))
		w.fired("clock/jumps")
		w.mu.Lock()
		w.skewed = true
		w.mu.Unlock()
	case "database": // which disturbs nobody: no clock of a database decides anything alone
		w.machine(s.On).site.skew.Store(int64(s.N) * int64(time.Second))
		w.count("database/clock")
	case "stall":
		w.network.stall(s.On, last)
	case "map":
		w.tasks.Go(func() { w.introduce(w.machine(s.On), s.With == everybody, w.weightsOf(s.N)) })
	case "cell":
		w.lose(w.machine(s.On).site, last)
	case "application":
		w.application(s, what, last)
	case "operator":
		w.tasks.Go(func() { w.operator(s, what, last) })
	default:
		panic("a plan with an unknown step: " + s.Do)
	}
}

// after does something later, unless all has become quiet before.
func (w *world) after(d time.Duration, do func()) {
	w.tasks.Go(func() {
		select {
		case <-time.After(d):
			do()
		case <-w.quiet:
		}
	})
}

func (w *world) machine(name string) *machine {
	number, _ := strconv.Atoi(strings.TrimPrefix(name, "gw"))
	return w.machines[number%len(w.machines)]
}

func (w *world) application(s Step, what string, last time.Duration) {
	a := w.apps[s.On]
	switch what {
	case "fails":
		a.arm(func() { a.failing, a.with = s.N, 500 })
	case "gone":
		a.arm(func() { a.failing, a.with = s.N, 410 })
	case "slow":
		a.arm(func() { a.slow, a.until = time.Duration(s.N)*time.Second, time.Now().Add(last) })
	case "holds":
		a.arm(func() { a.holds, a.until = time.Duration(s.N)*time.Second, time.Now().Add(last) })
	case "dies":
		a.die(last)
	default:
		a.arm(func() { a.commits = append(a.commits, what) })
	}
}

func (w *world) operator(s Step, what string, last time.Duration) {
	number := w.machine(s.On).number
	reason := map[string]any{"reason": "simulated"}
	switch what {
	case "pause":
		if !w.operate(number, "/destinations/"+s.With+"/pause", reason) {
			return
		}
		at := w.machine(s.On).site
		w.mu.Lock()
		w.paused[place{at.name, s.With}], w.told[place{at.name, s.With}] = time.Now(), gatewayName(number)
		w.mu.Unlock()
		w.after(last, func() { w.resume(at, s.With, false) })
	case "replay":
		w.harmed()
		w.operate(number, "/replay", map[string]any{"reason": "simulated", "filter": map[string]any{}})
	case "force":
		w.harmed()
		w.operate(number, "/replay", map[string]any{"reason": "simulated", "force": true, "filter": map[string]any{"destination": s.With}})
	case "reload":
		w.variant.Store(int64(s.N % variants))
		w.harmed()
		for i := range w.machines {
			w.operate(i, "/reload", nil)
		}
	}
}

// harmed marks a moment at which repetitions have a reason.
func (w *world) harmed() { w.fired("operator/acts") }
