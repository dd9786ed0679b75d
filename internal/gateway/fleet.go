package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

const (
	announceEvery = 3 * time.Second // api.Gone is some times as long
	forgetAfter   = time.Hour       // after its last word, another gateway is no news
	announceTime  = 2 * time.Second // for one word to the store
)

// fleet tells the gateways on one store of each other.
type fleet struct {
	self  journal.Gateway // what does not change
	stop  context.CancelFunc
	ended chan struct{}
}

// join begins to say how this gateway finds its destinations.
func (g *Gateway) join() {
	host, _ := os.Hostname() // which is for people alone
	g.fleet.self = journal.Gateway{ID: rand.Text(), Host: host, PID: os.Getpid(), Version: g.opt.Version, Since: g.opt.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	g.fleet.stop, g.fleet.ended = cancel, make(chan struct{})
	go func() {
		defer close(g.fleet.ended)
		tick := time.NewTicker(announceEvery)
		defer tick.Stop()
		for failing := false; ; {
			err := g.announce(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				g.opt.Logger.Warn("gateway: the other gateways are not told how this one finds its destinations", "error", err)
			}
			failing = err != nil
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}

// announce says it once.
func (g *Gateway) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	view, err := json.Marshal(g.targets())
	if err != nil {
		return err
	}
	self := g.fleet.self
	self.Seen, self.View = g.opt.Now(), view
	return g.records.Announce(ctx, self, self.Seen.Add(-forgetAfter))
}

// leave takes leave of the others. That it fails is no failure to stop: they notice by themselves.
func (g *Gateway) leave(ctx context.Context) {
	if g.fleet.stop == nil {
		return
	}
	g.fleet.stop()
	<-g.fleet.ended
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	if err := g.records.Withdraw(ctx, g.fleet.self.ID); err != nil {
		g.opt.Logger.Debug("gateway: the other gateways are not told that this one ends", "error", err)
	}
}
