package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
)

const (
	announceEvery = 3 * time.Second // fleet.Gone is some times as long
	forgetAfter   = time.Hour       // after its last word, another gateway is no news
	announceTime  = 2 * time.Second // for one word to the store
)

// announcer tells the gateways on one store of each other.
type announcer struct {
	self    journal.Gateway // what does not change
	opt     Options
	records journal.Registry
	targets func() []fleet.Target
	stop    context.CancelFunc
	ended   chan struct{}
	changed chan struct{} // takes a word: say it again at once
}

// join begins to say how this gateway finds its destinations.
func (f *announcer) join(o Options, records journal.Registry, targets func() []fleet.Target) {
	host, _ := os.Hostname() // which is for people alone
	f.opt, f.records, f.targets = o, records, targets
	f.self = journal.Gateway{ID: rand.Text(), Host: host, PID: os.Getpid(), Version: f.opt.Version, Since: f.opt.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.ended, f.changed = cancel, make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(f.ended)
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		for failing := false; ; {
			err := f.announce(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				f.opt.Logger.Warn("gateway: the other gateways are not told how this one finds its destinations", "error", err)
			}
			failing = err != nil
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-f.changed:
			}
		}
	}()
}

// hurry has it said soon, because it is another by now.
func (f *announcer) hurry() {
	select {
	case f.changed <- struct{}{}:
	default: // it will be, or nobody is told
	}
}

// announce says it once.
func (f *announcer) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	view, err := json.Marshal(f.targets())
	if err != nil {
		return err
	}
	self := f.self
	self.Seen, self.View = f.opt.Now(), view
	return f.records.Announce(ctx, self, self.Seen.Add(-forgetAfter))
}

// leave takes leave of the others. That it fails is no failure to stop: they notice by themselves.
func (f *announcer) leave(ctx context.Context) {
	if f.stop == nil {
		return
	}
	f.stop()
	<-f.ended
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	if err := f.records.Withdraw(ctx, f.self.ID); err != nil {
		f.opt.Logger.Debug("gateway: the other gateways are not told that this one ends", "error", err)
	}
}
