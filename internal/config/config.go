// Package config declares every setting of the gateway once, in the table beside the struct that holds
// it: its key, its default, its kind with its bounds, its help, and whether a change takes a new process.
// All else follows from that (see package settings): the name in the file, the environment variable, the
// flag, the messages, what is shown and what a reload sees.
//
// [Load] reads the file, the environment and the flags, in that order of rising precedence, and
// reports every fault it finds together with the place where it was written. [Flags] puts the same
// settings on a command. The package reads neither os.Args nor os.Environ: the program passes them
// in.
package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/settings"
)

// Config is a complete and checked configuration. A Config from [Load] can be used as it is; one
// that is put together by hand starts from [Default].
type Config struct {
	// Listen is the address, host:port, that providers post to. Port 0 takes a free one.
	Listen string
	// Admin is the address of the listener for people and machines. Without AdminTokens it is a loopback
	// address.
	Admin string
	// AdminTLS are the certificate that Admin shows, and its key; CA and ServerName mean nothing. Without it Admin speaks plain
	// HTTP, over which nobody logs in from another machine.
	AdminTLS TLS
	// AdminTokens are what Admin asks for, except for /healthz and /readyz. None: it asks for nothing.
	AdminTokens []AdminToken
	// Store says where the journal is kept.
	Store Store
	// StoreRead is a standby of Store's server, of which people's questions are asked; the zero value: there is none.
	StoreRead Store
	// Schema is the Postgres schema that holds the tables. In a SQLite file it is the prefix of an application's; a gateway's
	// tables have the usual one there.
	Schema string
	// Migrate brings a Postgres schema up to date at start. SQLite always migrates itself.
	Migrate bool
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
	// LogFormat is "text" or "json".
	LogFormat string
	// ShutdownTimeout bounds the whole of a clean stop.
	ShutdownTimeout time.Duration
	// ShutdownDelay is the part of it, at the beginning, in which requests are still served, although the
	// gateway says that it is not ready.
	ShutdownDelay time.Duration
	// Queue bounds what waits for its commit. A full queue answers 503.
	Queue Queue
	// Delivery says how events are delivered.
	Delivery Delivery
	// Retention says how long events, and what belongs to them, are kept. See also [Config.RetentionOf].
	Retention Retention
	// RetentionAudits is for how long it is on record what operators did. Zero: for ever.
	RetentionAudits time.Duration
	// MaxConnections is how many connections Listen may have at once, if the process has twice as many file descriptors, and
	// MaxConnectionsPerAddress how many of them one address, or /64 of IPv6, may have that is no trusted proxy's. Zero: a
	// quarter.
	MaxConnections           int
	MaxConnectionsPerAddress int
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// AdminPayloads says how bodies and headers of events are shown: [PayloadsOff], [PayloadsMasked] or [PayloadsFull].
	AdminPayloads string
	// Alerts says what is looked for.
	Alerts Alerts
	// Notify are the channels over which people are told of alerts, in the order of the file.
	Notify []Channel
	// DashboardURL is where people reach the dashboard, for links to it in what they are told. Empty: nobody said.
	DashboardURL string
	// Heartbeat is a URL that is asked for while nothing pages. Not set: none.
	Heartbeat settings.Secret
	// Tracing says where traces are exported to.
	Tracing Tracing
	// Cell is the name of the cell that the gateway belongs to; empty: there are none. Cells are all cells, by the map that has
	// the number CellsMap.
	Cell     string
	CellsMap int
	Cells    []Cell
	// CellListen is the address that other cells speak to.
	CellListen string
	// CellTLS are the certificate that is shown to other cells, its key, and what theirs are signed by. ServerName means nothing.
	CellTLS TLS
	// Destinations are the ones that have a name, in the order of the file. See also
	// [Config.AllDestinations].
	Destinations []Destination
	// Sources are the inbound endpoints, in the order of the file.
	Sources []Source
	// Development is set if nobody says which source this is for: on the gateway somebody develops. It has
	// at most one source, whose name, provider and secrets may be made up, and tries again sooner.
	Development bool
	// Warnings are remarks of [Load] that do not stop the program, one sentence each.
	Warnings []string
	// File is the name of the file that it was read from. Empty: there was none.
	File string
	// Inline are the secrets that stand in File itself, but for what everybody may know.
	Inline []Inline
	// SecretFiles are files of their own with secrets and private keys, but for what everybody may
	// know.
	SecretFiles []SecretFile

	origin settings.Layer
}

// The keys of what stands in lists.
const (
	tokensKey       = "admin_tokens"
	alertsKey       = "alerts" // a group with lists in it
	destinationsKey = "destinations"
	sourcesKey      = "sources"
)

// Queue bounds the events that wait for their commit, in number and in bytes, and the number that
// one commit takes.
type Queue struct {
	Events int
	Bytes  int64
	Batch  int
}

// Delivery says how events are delivered.
type Delivery struct {
	// Effort is that of every destination that does not say otherwise.
	Effort
	// AllowPrivate is set if destinations may have loopback, private and link-local addresses.
	AllowPrivate bool
	// Ports are the only ones that destinations may have. None: any.
	Ports []int
	// Lease is after how long another process takes over from one that died.
	Lease time.Duration
}

// configTable declares every setting outside destinations and sources.
var configTable = slices.Concat(
	settings.Table[Config]{
		{Key: "listen", Default: "127.0.0.1:8080", Help: "`host:port` that providers post to, at /in/<source>",
			Bind: func(c *Config) settings.Value { return settings.Address(&c.Listen) }, Restart: true},
		{Key: "admin", Default: "127.0.0.1:8081", Help: "`host:port` for people and machines: the API, /healthz, /readyz and /metrics; loopback unless there are admin_tokens",
			Bind: func(c *Config) settings.Value { return settings.Address(&c.Admin) }, Restart: true},
		{Key: "admin_payloads", Default: PayloadsOff, Help: "how bodies and headers of events are shown to who may look: off, masked or full",
			Bind: func(c *Config) settings.Value {
				return settings.Choice(&c.AdminPayloads, PayloadsOff, PayloadsMasked, PayloadsFull)
			}},
		{Key: "admin_tls.cert", Help: "PEM `file` with the certificate that admin shows; it speaks HTTPS then",
			Bind: func(c *Config) settings.Value { return settings.File(&c.AdminTLS.Cert, &c.AdminTLS.pem.cert) }},
		{Key: "admin_tls.key", Help: "PEM `file` with the key of that certificate",
			Bind: func(c *Config) settings.Value { return settings.File(&c.AdminTLS.Key, &c.AdminTLS.pem.key) }},
		{Key: "store", Default: "sqlite:hookonce.db", Help: "where events are kept: sqlite:PATH or postgres://... as a `DSN`",
			Bind: func(c *Config) settings.Value { return storeValue{&c.Store} }, Restart: true},
		{Key: "store_read", Help: "a standby of a Postgres store, as a `DSN`: lists and pages for people are read there",
			Bind: func(c *Config) settings.Value { return standbyValue{storeValue{&c.StoreRead}} }, Restart: true},
		{Key: "schema", Default: "hookonce", Help: "`name` of the Postgres schema that holds the tables",
			Bind: func(c *Config) settings.Value { return settings.Text(&c.Schema, checkSchema) }, Restart: true},
		{Key: "migrate", Default: "true", Help: "bring a Postgres schema up to date at start",
			Bind: func(c *Config) settings.Value { return settings.Bool(&c.Migrate) }, Restart: true},
		{Key: "log.level", Default: "info", Help: "least `level` to log: debug, info, warn or error",
			Bind: func(c *Config) settings.Value { return settings.Level(&c.LogLevel) }},
		{Key: "log.format", Default: "text", Help: "`format` of the log: text or json",
			Bind: func(c *Config) settings.Value { return settings.Choice(&c.LogFormat, "text", "json") }, Restart: true},
		{Key: "shutdown_timeout", Default: "20s", Help: "longest `time` that a clean stop may take",
			Bind: func(c *Config) settings.Value { return settings.Duration(&c.ShutdownTimeout, briefly, time.Hour) }},
		{Key: "shutdown_delay", Default: "0s", Help: "`time` at the beginning of a stop in which /readyz answers 503 already and requests are still served",
			Bind: func(c *Config) settings.Value { return settings.Duration(&c.ShutdownDelay, 0, time.Hour) }},
		{Key: "max_connections", Default: "4096", Help: "`number` of connections that listen may have at once, and at most half of the process's file descriptors",
			Bind: func(c *Config) settings.Value { return settings.Count(&c.MaxConnections, 1, 1<<20) }},
		{Key: "max_connections_per_address", Help: "`number` of them that one address, or /64 of IPv6, may have; a quarter of max_connections if not set",
			Bind: func(c *Config) settings.Value { return settings.Count(&c.MaxConnectionsPerAddress, 1, 1<<20) }},
		{Key: "trusted_proxies", Help: "`network` of proxies whose X-Forwarded-For is believed; repeatable",
			Bind: func(c *Config) settings.Value { return settings.Networks(&c.TrustedProxies) }},
		{Key: "queue.events", Default: "8192", Help: "`number` of events that may wait for their commit before requests are answered 503",
			Bind: func(c *Config) settings.Value { return settings.Count(&c.Queue.Events, 1, 1<<20) }, Restart: true},
		{Key: "queue.bytes", Default: "64MiB", Help: "`size` of all events that may wait for their commit",
			Bind: func(c *Config) settings.Value { return settings.Size(&c.Queue.Bytes, 1<<20, 64<<30) }, Restart: true},
		{Key: "queue.batch", Default: "256", Help: "largest `number` of events in one commit",
			Bind: func(c *Config) settings.Value { return settings.Count(&c.Queue.Batch, 1, 4096) }, Restart: true},
	},
	settings.Nest(effortTable, func(c *Config) *Effort { return &c.Delivery.Effort },
		func(f *settings.Field[Config]) { f.Key = delivery + f.Key }),
	settings.Table[Config]{
		{Key: "delivery.allow_private", Default: "true", Help: "deliver to loopback, private and link-local addresses",
			Bind: func(c *Config) settings.Value { return settings.Bool(&c.Delivery.AllowPrivate) }},
		{Key: "delivery.ports", Help: "`port` that destinations may have; any if not set; repeatable",
			Bind: func(c *Config) settings.Value { return settings.Numbers(&c.Delivery.Ports, "443", checkPort) }},
		{Key: "delivery.lease", Default: "9s", Help: "`time` after which the deliveries of a process that died are taken over",
			Bind: func(c *Config) settings.Value {
				return settings.Duration(&c.Delivery.Lease, 100*time.Millisecond, time.Hour)
			}, Restart: true},
	},
	settings.Nest(retentionTable, func(c *Config) *Retention { return &c.Retention }, func(*settings.Field[Config]) {}),
	settings.Table[Config]{
		{Key: "retention.audits", Default: "400d", Help: "`time` for which it is on record what operators did",
			Bind: func(c *Config) settings.Value { return settings.Duration(&c.RetentionAudits, time.Minute, forever) }},
	},
	cellsTable,
	tracingTable,
	alertTable,
	notifyTable, // the last: Show puts the lists of alerts behind it
)

// Default returns the configuration that holds when nothing is set: no sources.
func Default() *Config {
	c := new(Config)
	configTable.Reset(c)
	return c
}

// Flags declares a flag for every setting. Their values are read by [Load], which also reports what
// is wrong with them.
func Flags(fs *pflag.FlagSet) {
	settings.Declare(fs, configTable)
	settings.Declare(fs, sourceTable)
}

// StoreFlags declares the flags of the settings that say where the tables are: store and schema.
func StoreFlags(fs *pflag.FlagSet) { settings.Declare(fs, configTable.Only("store", "schema")) }

// Says reports whether anybody wrote the setting with that key, such as "log.level": in the file, the
// environment or a flag.
func (c *Config) Says(key string) bool {
	return c.origin.Has(key)
}

// where returns the place that the first of the given settings came from.
func (c *Config) where(keys ...string) settings.Place {
	return c.origin.Where(settings.Place{}, keys...)
}

// StoreNamed reports whether anybody said which store it is.
func (c *Config) StoreNamed() bool { return c.origin.Has("store") }

// refersTo reports whether a secret is read from the variable.
func (c *Config) refersTo(variable string) bool {
	var all []settings.Secret
	for _, s := range c.Sources {
		all = append(append(all, s.Token, s.AppSecret), s.Secrets...)
	}
	for _, d := range c.AllDestinations() {
		all = append(append(all, d.AppSecret), d.Secrets...)
		for _, h := range d.Headers {
			all = append(all, h.Value)
		}
	}
	for _, t := range c.AdminTokens {
		all = append(all, t.Token)
	}
	for _, n := range c.Notify {
		all = append(append(all, n.URL), n.Secrets...)
	}
	all = append(all, c.Heartbeat)
	all = append(all, c.Tracing.Secret)
	return slices.ContainsFunc(all, func(s settings.Secret) bool { return s.Reference() == "env:"+variable })
}

// Format writes how many sources there are.
func (c Config) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "configuration of %d sources", len(c.Sources))
}

// NewDestination returns a destination with everything else as the configuration has it for all.
func (c *Config) NewDestination(name, url string) Destination {
	d := Destination{Effort: c.Delivery.Effort}
	destinationTable.Reset(&d)
	d.Name, d.URL = name, url
	return d
}

// AllDestinations returns the destinations of the file, and the one of every source with a URL of its
// own, which has the name of the source.
func (c *Config) AllDestinations() []Destination {
	all := append([]Destination(nil), c.Destinations...)
	for _, s := range c.Sources {
		if s.To != "" && s.Mode != Idempotent {
			all = append(all, c.ownDestination(&s))
		}
	}
	return all
}

// ownDestination returns the destination of a source with a URL of its own.
func (c *Config) ownDestination(s *Source) Destination {
	if s.own != nil {
		return s.destination()
	}
	d := c.NewDestination(s.Name, s.To)
	d.SignAs, d.AppSecret, d.AppURL = s.SignAs, s.AppSecret, s.AppURL
	d.at, d.origin = s.where(toKey), s.said()
	return d
}

// inherited says of every setting that destinations take from those under delivery where it is.
func (c *Config) inherited() settings.Layer {
	from := settings.Layer{}
	for _, f := range effortTable {
		if f.Default != "" || c.origin.Has(delivery+f.Key) {
			from[f.Key] = settings.Given{At: settings.Place{Name: delivery + f.Key}}
		}
	}
	return from
}

// RetentionOf returns the periods that hold for a source: its own, where it has them, and those of all
// sources. Without either, attempts and answers are kept as long as its bodies. Zero keeps for ever.
func (c *Config) RetentionOf(s *Source) Retention {
	r := Retention{
		IDs:      cmp.Or(s.Retention.IDs, c.Retention.IDs),
		Bodies:   cmp.Or(s.Retention.Bodies, c.Retention.Bodies),
		Attempts: cmp.Or(s.Retention.Attempts, c.Retention.Attempts),
		Answers:  cmp.Or(s.Retention.Answers, c.Retention.Answers),
	}
	r.Attempts, r.Answers = cmp.Or(r.Attempts, r.Bodies), cmp.Or(r.Answers, r.Bodies)
	return r
}

// Changes returns what is different in next, which is to take the place of c: what destinations take from
// delivery once, there. It goes by what holds and not by where it is written, and by the content of what
// secrets and certificates refer to. The order of destinations, sources and tokens does not count.
func (c *Config) Changes(next *Config) (all []settings.Change) {
	all = settings.Differ(c, next, configTable, c.origin, next.origin)
	all = append(all, settings.Match("admin token", c.AdminTokens, next.AdminTokens,
		func(t *AdminToken) string { return t.Name }, (*AdminToken).changes)...)
	all = append(all, settings.Match("cell", c.Cells, next.Cells,
		func(c *Cell) string { return c.Name }, (*Cell).changes)...)
	all = append(all, settings.Match("rule", c.Alerts.Rules, next.Alerts.Rules,
		func(r *AlertRule) string { return r.Rule }, (*AlertRule).changes)...)
	all = append(all, settings.Match("channel", c.Notify, next.Notify,
		func(n *Channel) string { return n.Name }, (*Channel).changes)...)
	all = append(all, settings.Match("destination", c.Destinations, next.Destinations,
		func(d *Destination) string { return d.Name }, (*Destination).changes)...)
	return append(all, settings.Match("source", c.Sources, next.Sources,
		func(s *Source) string { return s.Name }, (*Source).changes)...)
}

// SameSource reports whether both have a source of that name, of whose own nothing is different.
func (c *Config) SameSource(other *Config, name string) bool {
	for i := range c.Sources {
		for j := range other.Sources {
			if a, b := &c.Sources[i], &other.Sources[j]; a.Name == name && b.Name == name {
				return a.Same(b)
			}
		}
	}
	return false
}

// Show returns the whole configuration as a file, each setting with where it came from. Secrets that
// are references appear as such; literal secrets and passwords are masked.
func (c *Config) Show() string {
	p := new(settings.Printer)
	settings.Print(p, c, configTable, c.origin)
	if len(c.Notify)+len(c.Alerts.Rules) > 0 {
		p.Within(alertsKey, func() {
			p.List(rulesKey, len(c.Alerts.Rules), func(i int) {
				settings.Print(p, &c.Alerts.Rules[i], ruleTable, c.Alerts.Rules[i].origin)
			})
			p.List(notifyKey, len(c.Notify), func(i int) { settings.Print(p, &c.Notify[i], channelTable, c.Notify[i].origin) })
		})
	}
	p.List(cellsKey, len(c.Cells), func(i int) { settings.Print(p, &c.Cells[i], cellTable, c.Cells[i].origin) })
	p.List(tokensKey, len(c.AdminTokens), func(i int) {
		settings.Print(p, &c.AdminTokens[i], tokenTable, c.AdminTokens[i].origin)
	})
	p.List(destinationsKey, len(c.Destinations), func(i int) {
		settings.Print(p, &c.Destinations[i], destinationTable, c.Destinations[i].origin)
	})
	p.List(sourcesKey, len(c.Sources), func(i int) { c.Sources[i].print(p) })
	return p.String()
}
