package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/alerting/letter"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/notify"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// telling is how people are told: the channels, and the heartbeat.
type telling struct {
	channels  []*notify.Channel
	addresses []alerting.Address  // of the channels
	heartbeat *notify.Heartbeat   // nil: there is none
	transport *outgoing.Transport // nil: nothing needs it
}

// newTelling makes the channels that are configured. Requests go where deliveries may go; who the mail server is, operators say
// alone, and it may be on a private network.
func newTelling(cfg *config.Config, policy deliver.AddressPolicy) (t telling, err error) {
	if len(cfg.Notify) == 0 && cfg.Heartbeat.Reveal() == "" {
		return t, nil
	}
	t.transport = deliver.NewTransport(policy)
	o := notify.Options{Transport: t.transport, Dial: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
	for i := range cfg.Notify {
		c := &cfg.Notify[i]
		channels, err := notify.New(c.Notify(), o)
		if err != nil {
			return t, fmt.Errorf("alerts.notify: %s: %w", c.Name, err)
		}
		var severities []alert.Severity
		for _, s := range c.Severities {
			severities = append(severities, alert.Severity(s))
		}
		for _, channel := range channels {
			t.channels = append(t.channels, channel)
			t.addresses = append(t.addresses, alerting.Address{Name: channel.Name(), Severities: severities, Notifier: teller{channel, cfg.DashboardURL}})
		}
	}
	if address := cfg.Heartbeat.Reveal(); address != "" {
		if t.heartbeat, err = notify.NewHeartbeat(address, o); err != nil {
			return t, fmt.Errorf("alerts.heartbeat: %w", err)
		}
	}
	return t, nil
}

// teller tells one address of alerts.
type teller struct {
	channel   *notify.Channel
	dashboard string
}

// Notify sends what a letter says over the channel.
func (t teller) Notify(ctx context.Context, m alerting.Message) error {
	_, err := t.channel.Send(ctx, letter.Write(m, t.dashboard))
	return err
}

// channels returns over what people are told.
func (g *Gateway) channels() []api.Channel {
	t := &g.wired.Load().telling
	all := make([]api.Channel, 0, len(t.channels))
	for i, c := range t.channels {
		severities := make([]string, 0, 2)
		for _, s := range t.addresses[i].Severities {
			severities = append(severities, string(s))
		}
		all = append(all, api.Channel{Name: c.Name(), Kind: c.Kind(), Severities: severities})
	}
	return all
}

var errChannelGone = errors.New("this channel is not configured any more")

// testChannel sends a message that only shows that it arrives.
func (g *Gateway) testChannel(ctx context.Context, name string) (string, error) {
	w := g.wired.Load()
	for _, c := range w.telling.channels {
		if c.Name() == name {
			host, _ := os.Hostname() // which is for people alone
			return c.Send(ctx, letter.Test(name, w.cfg.Alerts.Name, host, w.cfg.DashboardURL, g.opt.Now()))
		}
	}
	return "", errChannelGone
}

// beat says to whom the heartbeat is for that all is well.
func (g *Gateway) beat(ctx context.Context) {
	h := g.wired.Load().telling.heartbeat
	if h == nil {
		return
	}
	if err := h.Beat(ctx); err != nil {
		g.opt.strange.Warn("gateway: the heartbeat of alerts does not arrive", "error", err)
	}
}

// closeIdle leaves the connections behind that requests used until now.
func (t telling) closeIdle() {
	if t.transport != nil {
		t.transport.CloseIdleConnections()
	}
}
