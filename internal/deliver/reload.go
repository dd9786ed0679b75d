package deliver

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"golang.org/x/time/rate"

	"github.com/hookonce/hookonce/internal/journal"
)

// errStopped says that a reload came too late.
var errStopped = errors.New("deliver: stopped")

// Reload makes these the destinations, and these the sources whose senders are answered what the
// destination answered. It is all or nothing: when the settings of one destination make no sense, or the
// deliverer was stopped, nothing is changed.
//
// Attempts under way end as they began. What waits for a destination follows its new settings, and goes
// back to the journal where there are none any more; the journal should bring nothing for it by then. A
// destination with another URL or other certificates is another one, whose health is not known yet, and
// so is one whose breaker has other settings. The others keep theirs, their connections, and what is
// left of an unchanged rate.
func (d *Deliverer) Reload(destinations map[string]Destination, relayed map[string]bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.stopping:
		return errStopped
	default:
	}
	outfits := make(map[string]*outfit, len(destinations))
	for name, s := range destinations {
		o, err := d.outfit(name, s, d.lanes[name])
		if err != nil {
			return fmt.Errorf("deliver: destination %q: %w", name, err)
		}
		outfits[name] = o
	}
	d.answered.Store(&relayed)
	for name, o := range outfits {
		if d.lanes[name] == nil {
			d.lanes[name] = &lane{Deliverer: d, name: name, gone: true}
		}
		d.lanes[name].fit(o)
	}
	for name, l := range d.lanes {
		if _, stays := outfits[name]; !stays {
			l.leave()
		}
	}
	return nil
}

// lane returns that of a destination, nil if there never was one.
func (d *Deliverer) lane(name string) *lane {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.lanes[name]
}

// outfit is what the settings of a destination make of its lane. It is not changed afterwards.
type outfit struct {
	settings    Destination
	dest        *destination
	concurrency int
	limiter     *rate.Limiter // nil: no rate
	breaker     Breaker
}

// outfit makes one of settings, with what can be kept of that of a lane; which is nil if it is new.
func (d *Deliverer) outfit(name string, s Destination, l *lane) (*outfit, error) {
	before := l.before()
	o := &outfit{settings: s, concurrency: cmp.Or(s.Concurrency, d.opt.Concurrency)}
	transport := d.opt.Transport
	switch {
	case transport != nil:
	case before != nil && before.connects(o):
		transport = before.dest.transport
	default:
		transport = newTransport(s, o.concurrency)
	}
	var err error
	if o.dest, err = newDestination(name, s, transport); err != nil {
		return nil, err
	}
	if o.breaker, err = s.Breaker.withDefaults(o.dest.schedule); err != nil {
		return nil, err
	}
	switch {
	case before != nil && before.settings.Rate == s.Rate:
		o.limiter = before.limiter
	case s.Rate > 0:
		// A tenth of a second may be made up for after a pause.
		o.limiter = rate.NewLimiter(rate.Limit(s.Rate), max(1, int(s.Rate/10)))
	}
	return o, nil
}

// connects reports whether another outfit connects in the same way.
func (o *outfit) connects(other *outfit) bool {
	a, b := o.settings, other.settings
	return a.TLS == b.TLS && o.concurrency == other.concurrency && reflect.DeepEqual(a.Policy, b.Policy)
}

// same reports whether what is known about the health of the destination holds for another outfit.
func (o *outfit) same(other *outfit) bool {
	a, b := o.settings, other.settings
	return a.URL == b.URL && a.TLS == b.TLS && o.breaker == other.breaker
}

// before returns the outfit of a lane, nil if there is none.
func (l *lane) before() *outfit {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outfit
}

// fit gives the lane an outfit, and goes on with it.
func (l *lane) fit(o *outfit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.outfit
	l.outfit = o
	if l.gone || !before.same(o) {
		l.health = newHealth(o.breaker, o.concurrency, l.opt.Now())
		l.metrics.breaker.WithLabelValues(l.name).Set(Healthy.number())
		if before != nil {
			l.opt.Journal.Suspend(l.name, journal.Rest{})
		}
	}
	l.health.resize(o.concurrency)
	l.gone = false
	if before != nil && !before.connects(o) {
		closeIdle(before.dest.transport)
	}
	if l.wake != nil { // for a rate that may be another
		l.wake.Stop()
		l.wake = nil
	}
	l.advance()
}

// leave hands back what waits, now and until the lane gets an outfit again. Attempts under way go on.
func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	l.gone = true
	l.metrics.breaker.DeleteLabelValues(l.name)
	l.handBack(l.queue.drain(), l.opt.Now())
	closeIdle(l.dest.transport)
}

// closeIdle closes the connections of a transport that nobody uses; the others close when they are not
// used any more.
func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
