package config

import (
	"fmt"
	"slices"

	"github.com/hookonce/hookonce/internal/notify"
	"github.com/hookonce/hookonce/internal/settings"
)

// Channel is a way to tell people of alerts.
type Channel struct {
	// Name is what people call it; it is on record who was told.
	Name string
	// URL is where it leads, see [notify.Check]. All of it is a secret.
	URL settings.Secret
	// Secrets sign what goes to a webhook, every one of them.
	Secrets []settings.Secret
	// Severities are what it is told of: "page", "ticket" or both.
	Severities []string

	origin settings.Layer
	at     settings.Place
}

// Format writes the name: what was written in the file, secrets among it, is beside the fields.
func (c Channel) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "channel %s", c.Name) }

// notifyKey is the list of channels, below alerts.
const notifyKey = "notify"

// severities are those that anybody is told of.
var severities = []string{"page", "ticket"}

// channelTable declares every setting of a channel.
var channelTable = settings.Table[Channel]{
	{Key: "name", Bind: func(c *Channel) settings.Value { return settings.Text(&c.Name, checkName) }},
	{Key: "url", Bind: func(c *Channel) settings.Value { return settings.OutsideReference(&c.URL) }},
	{Key: "secrets", Bind: func(c *Channel) settings.Value { return settings.References(&c.Secrets) }},
	{Key: "severities", Bind: func(c *Channel) settings.Value {
		return settings.Names(&c.Severities, "page", func(s string) error { return settings.Choice(new(string), severities...).Set(s) })
	}},
}

// heartbeatKey is the setting of the heartbeat.
const heartbeatKey = "alerts.heartbeat"

// notifyTable declares the settings of who is told besides the channels.
var notifyTable = settings.Table[Config]{
	{Key: "alerts.dashboard_url", Help: "`URL` at which people reach the dashboard, for links in what they are told",
		Bind: func(c *Config) settings.Value { return settings.URLLike(&c.DashboardURL, "https://hooks.internal/") }},
	{Key: heartbeatKey, Help: "`reference` of a URL that is asked for while nothing pages, so that somebody is told of a gateway that is gone",
		Bind: func(c *Config) settings.Value { return settings.OutsideReference(&c.Heartbeat) }},
}

// where returns the place that a setting of the channel came from, or that of the channel.
func (c *Channel) where(key string) settings.Place { return c.origin.Where(c.at, key) }

func (c *Channel) changes(next *Channel) []settings.Change {
	return settings.Differ(c, next, channelTable, c.origin, next.origin)
}

// called begins what is wrong with a setting of the channel: its line alone does not say which channel it is.
func (c *Channel) called(key string) string {
	if c.Name == "" {
		return key
	}
	return "channel " + c.Name + ": " + key
}

// secrets returns those of the channel as text.
func (c *Channel) secrets() (all []string) {
	for _, s := range c.Secrets {
		all = append(all, s.Reveal())
	}
	return all
}

// Notify returns where the channel leads, for package notify.
func (c *Channel) Notify() notify.Config {
	return notify.Config{Name: c.Name, Address: c.URL.Reveal(), Secrets: c.secrets()}
}

// channel builds a channel from what the file says.
func (l *loader) channel(from section) Channel {
	c := Channel{at: from.at}
	c.origin = settings.Apply(l.Report, &c, channelTable, from.says)
	if len(c.Severities) == 0 && !c.origin.Has("severities") {
		c.Severities = slices.Clone(severities)
	}
	return c
}

// resolveChannels reads the addresses of the channels and of the heartbeat.
func resolveChannels(r *settings.Report, e resolver, cfg *Config) {
	addresses := e
	addresses.What = "address"
	for i := range cfg.Notify {
		c := &cfg.Notify[i]
		if c.URL.Reference() != "" {
			resolveSecret(r, addresses, &c.URL, c.where("url"), c.called("url"))
		}
		for j := range c.Secrets {
			resolveSecret(r, e, &c.Secrets[j], c.origin.Element("secrets", j), c.called("secrets"))
		}
	}
	if cfg.Heartbeat.Reference() != "" {
		resolveSecret(r, addresses, &cfg.Heartbeat, cfg.where(heartbeatKey), heartbeatKey)
	}
}

// checkChannels looks for what channels lack, and for addresses that nothing can be sent to.
func checkChannels(r *settings.Report, cfg *Config) {
	names := map[string]settings.Place{}
	for i := range cfg.Notify {
		c := &cfg.Notify[i]
		for _, need := range []struct{ key, example string }{{"name", "oncall"}, {"url", `"env:PAGER_URL"`}} {
			if !c.origin.Has(need.key) {
				r.Fault(c.at, "an element of alerts.notify lacks its %s; write %s: and a value such as %s", need.key, need.key, need.example)
			}
		}
		if first, twice := names[c.Name]; twice && c.Name != "" {
			r.Fault(c.where("name"), "name: an element of alerts.notify called %q exists already, at %s; write another name", c.Name, first)
		}
		names[c.Name] = c.where("name")
		if slices.ContainsFunc(c.Secrets, func(s settings.Secret) bool { return s.Reveal() == "" }) || c.URL.Reveal() == "" {
			continue // reported already, or not read
		}
		if err := notify.Check(c.URL.Reveal(), c.secrets()); err != nil {
			r.Fault(c.where("url"), "%s: what %s refers to cannot be used: %v", c.called("url"), c.URL, err)
		}
	}
	if address := cfg.Heartbeat.Reveal(); address != "" {
		if err := notify.CheckHeartbeat(address); err != nil {
			r.Fault(cfg.where(heartbeatKey), "%s: what %s refers to cannot be used: %v", heartbeatKey, cfg.Heartbeat, err)
		}
	}
}
