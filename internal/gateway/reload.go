package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce/internal/api"
)

// Errors of [Gateway.Reload] besides what its configuration says. Nothing was changed.
var (
	// ErrNothingToReload says that the gateway was started without a way to read its configuration again.
	ErrNothingToReload = errors.New("there is no configuration to read again")
	// ErrStopping says that the gateway stops.
	ErrStopping = errors.New("the gateway is stopping")
	// ErrNotOpen says that the store was away when the gateway started, and still is.
	ErrNotOpen = errors.New("the store is away; it is tried again every second")
)

// RestartError says that a new configuration changes settings that take a new process. Nothing was changed.
type RestartError struct {
	// Settings are their keys.
	Settings []string
}

func (e *RestartError) Error() string {
	return "needs a restart: " + strings.Join(e.Settings, ", ") + "; nothing was changed"
}

// Reload reads the configuration anew, holds it against the one that runs, and uses it, on account of by. It
// returns what changed, in words without secrets. It is all or nothing: with an error, which may be
// [settings.Problems] or a [RestartError], nothing was changed. All that comes of it is in the log.
//
// Requests and attempts under way end as they began, and none is refused because of it. Calls wait for each
// other. ctx bounds the preparation; the change itself takes no time.
func (g *Gateway) Reload(ctx context.Context, by string) (changed []string, err error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	changed, err = g.reload(ctx)
	var faults settings.Problems
	switch {
	case errors.As(err, &faults):
		for _, f := range faults {
			g.opt.Logger.Error("gateway: not reloaded, because of a fault in the configuration; nothing was changed", "by", by, "fault", f)
		}
	case err != nil:
		g.opt.Logger.Error("gateway: not reloaded; nothing was changed", "by", by, "error", err)
	case len(changed) == 0:
		g.opt.Logger.Info("gateway: reloaded; nothing has changed", "by", by)
	default:
		g.opt.Logger.Info("gateway: reloaded", "changes", changed, "by", by)
	}
	return changed, err
}

func (g *Gateway) reload(ctx context.Context) (changed []string, err error) {
	switch {
	case g.stopping.Load():
		return nil, ErrStopping
	case g.opt.Load == nil:
		return nil, ErrNothingToReload
	case !g.opened.Load():
		return nil, ErrNotOpen
	}
	next, err := g.opt.Load()
	if err != nil {
		return nil, err
	}
	changes := g.config().Changes(next)
	if changed, err = decide(changes); len(changed) == 0 {
		return nil, err
	}
	wired, err := wire(next, g.wired.Load())
	if err != nil {
		return nil, err
	}
	if wired.opened, err = g.openServices(ctx, &wired.plan); err != nil {
		return nil, err
	}
	wired.watching = g.observe(&wired.plan, g.wired.Load())
	if err := g.swap(wired); err != nil {
		g.kept.discard(wired.opened)
		return nil, err
	}
	for _, text := range next.Warnings {
		g.opt.Logger.Warn(text)
	}
	return changed, nil
}

// decide returns the changes in words, or why they cannot be made while the gateway runs.
func decide(changes []settings.Change) (changed []string, err error) {
	var restart []string
	for _, c := range changes {
		changed = append(changed, c.Text)
		if c.Restart {
			restart = append(restart, c.Setting)
		}
	}
	if len(restart) > 0 {
		return nil, &RestartError{restart}
	}
	return changed, nil
}

// swap makes a wiring the one that runs, unless the gateway stops. Destinations come before the events that are
// for them; for those that go, nothing is taken any more from when their lanes are closed.
func (g *Gateway) swap(w *wiring) error {
	g.swapping.Lock()
	defer g.swapping.Unlock()
	if g.stopping.Load() {
		return ErrStopping
	}
	before := g.wired.Load()
	if err := g.deliver.Reload(w.deliver.Destinations, w.deliver.Relayed); err != nil {
		return err
	}
	if err := g.journal.Reload(w.journal.Destinations, w.journal.Retention); err != nil {
		return errors.Join(err, g.deliver.Reload(before.deliver.Destinations, before.deliver.Relayed))
	}
	g.guard.Reload(w.tokens)
	connections, _ := connectionLimits(&w.plan, descriptors())
	g.checkDescriptors(&w.plan, connections)
	g.ingest.SetLimits(connections)
	g.wired.Store(w)
	g.handler.Reload(w.ingest.Sources, w.endpoints(), w.ingest.TrustedProxies)
	g.memory()
	g.kept.use(w.opened)
	g.observing.retire(before.watching, w.watching)
	if g.opt.Level != nil {
		g.opt.Level.Set(w.logLevel)
	}
	return nil
}

// reloadFor is Reload for the API.
func (g *Gateway) reloadFor(ctx context.Context, by string) ([]string, error) {
	changed, err := g.Reload(ctx, by)
	var faults settings.Problems
	var restart *RestartError
	switch {
	case err == nil:
		return changed, nil
	case errors.As(err, &faults):
		refused := &api.Refused{Detail: fmt.Sprintf("the configuration has %d fault(s); nothing was changed", len(faults)), Invalid: true}
		for _, f := range faults {
			refused.Faults = append(refused.Faults, f.Error())
		}
		return nil, refused
	case errors.As(err, &restart):
		return nil, &api.Refused{Detail: err.Error()}
	}
	return nil, &api.Refused{Detail: err.Error() + "; nothing was changed"}
}
