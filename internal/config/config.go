// Package config declares every setting of the gateway once: its key in the file, its environment
// variable, its flag, its default, its help and its validation all follow from the tables of
// fields: settings and sourceSettings, and those that only a file has room for.
//
// [Load] reads the file, the environment and the flags, in that order of rising precedence, and
// reports every fault it finds together with the place where it was written. [Flags] puts the same
// settings on a command. The package reads neither os.Args nor os.Environ: the program passes them
// in.
package config

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// Config is a complete and checked configuration. A Config from [Load] can be used as it is; one
// that is put together by hand starts from [Default].
type Config struct {
	// Listen is the address, host:port, that providers post to. Port 0 takes a free one.
	Listen string
	// Admin is the address of the listener for people and machines. Without AdminTokens it is a loopback
	// address.
	Admin string
	// AdminTokens are what Admin asks for, except for /healthz and /readyz. None: it asks for nothing.
	AdminTokens []AdminToken
	// Store says where the journal is kept.
	Store Store
	// Schema is the Postgres schema that holds the tables. SQLite ignores it.
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

	origin layer
}

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

// Source is one inbound endpoint: /in/<Name>.
type Source struct {
	Name     string
	Provider string
	// Secrets verify requests; any one of them that is valid at the time suffices, so that a secret can
	// be rotated.
	Secrets []Secret
	// Handshakes is set if the provider's challenges are answered.
	Handshakes bool
	// Token is the text that a handshake asks for besides the secret.
	Token Secret
	// To is the URL that events are delivered to, as a destination of its own that has the name of the
	// source. Empty: see Routes.
	To string
	// SignAs, AppSecret and AppURL are for the destination To: see [Destination]. Empty: SignProvider.
	SignAs    string
	AppSecret Secret
	AppURL    string
	// Routes say which events go to which destinations. Neither To nor Routes: events are stored and
	// delivered nowhere.
	Routes []Route
	// Rate is how many requests per second are taken, and Burst how many at once. A rate of zero takes
	// all; a burst of zero is twice the rate.
	Rate  float64
	Burst int
	// Allow are the networks that requests may come from. None: all.
	Allow []netip.Prefix
	// Twins says what happens to distinct events for one change.
	Twins Twins
	// Mode is [Async], [Sync], [Observe] or [Idempotent]. Empty: Async.
	Mode string
	// Idempotency is for mode Idempotent.
	Idempotency Idempotency
	// Deadline is how long a sender may be kept waiting. Zero: see [Source.Patience].
	Deadline time.Duration
	// OnStoreDown is [Closed] or [Open]. Empty: Closed.
	OnStoreDown string
	// OpenTypes are patterns for the types of events that Open is for. None: all.
	OpenTypes []string
	// Retention has the periods of the source's own. Zero: see [Config.RetentionOf].
	Retention Retention
	// URL is the public address of the endpoint, for providers that sign it.
	URL string
	// MaxBody is the largest body that is read, in bytes. Zero: the provider's own limit.
	MaxBody int64
	// Tolerance is how far a signed timestamp may be from now. Zero: what the provider recommends.
	Tolerance time.Duration
	// HMAC configures the provider "hmac" and is zero for others.
	HMAC HMAC
	// Spec is the specification of the provider "custom" and nil for others.
	Spec *spec.Spec

	own    *Destination // the settings of To, where it has some of its own
	origin layer
	at     place
}

// Twins says what happens to the second of two events for one change. It is delivered with a header
// that says so, unless its type is listed here.
type Twins struct {
	// Drop are the types that are stored and not delivered.
	Drop []string
}

// HMAC describes the signature and the layout of a sender that the catalogue does not know. Fields that
// are empty have the defaults of [provider.HMACConfig].
type HMAC struct {
	// Header is the request header that carries the signature. Default X-Signature.
	Header string
	// Encoding of the signature: "hex", "base64" or "base64url". Default hex.
	Encoding string
	// Digest is "sha256", "sha1" or "sha512". Default sha256.
	Digest string
	// Prefix stands before the signature in the header, such as "sha256=". Default none.
	Prefix string
	// Form is how the secret's text becomes a key: "utf8", "base64", "hex" or "whsec". Default utf8.
	Form string
	// Key lists where the parts of the event's key are, such as "json:$.id" or "header:X-Event-Id".
	// Default json:$.id.
	Key []string
	// Type is where the event's type is, in the same form. Default json:$.type.
	Type string
}

// Says reports whether anybody wrote the setting with that key, such as "log.level": in the file, the
// environment or a flag.
func (c *Config) Says(key string) bool {
	_, written := c.origin[key]
	return written
}

// Default returns the configuration that holds when nothing is set: no sources.
func Default() *Config {
	c := new(Config)
	for _, f := range settings {
		f.reset(c)
	}
	return c
}

// DefaultSource returns a source with every setting at its default and no name.
func DefaultSource() Source {
	var s Source
	for _, f := range sourceSettings {
		f.reset(&s)
	}
	return s
}
