// Package config declares every setting of the gateway once: its key in the file, its environment
// variable, its flag, its default, its help and its validation all follow from the two tables in
// table.go.
//
// [Load] reads the file, the environment and the flags, in that order of rising precedence, and
// reports every fault it finds together with the place where it was written. [Flags] puts the same
// settings on a command. The package reads neither os.Args nor os.Environ: the program passes them
// in.
package config

import (
	"log/slog"
	"time"
)

// Config is a complete and checked configuration. A Config from [Load] can be used as it is; one
// that is put together by hand starts from [Default].
type Config struct {
	// Listen is the address, host:port, that providers post to. Port 0 takes a free one.
	Listen string
	// Admin is the address of the listener for people and machines. Only loopback is allowed.
	Admin string
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
	// Queue bounds what waits for its commit. A full queue answers 503.
	Queue Queue
	// Delivery says how events are delivered.
	Delivery Delivery
	// Retention says how long ids and bodies are kept.
	Retention Retention
	// Sources are the inbound endpoints, in the order of the file.
	Sources []Source
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

// Delivery says how many deliveries run at once, how long one may take, after how many attempts it is
// given up, and after how long another process takes over from one that died.
type Delivery struct {
	Concurrency int
	Timeout     time.Duration
	Attempts    int
	Lease       time.Duration
}

// Retention says how long the journal remembers ids, and how long it keeps bodies with their
// attempts. IDs is never below Bodies.
type Retention struct {
	IDs    time.Duration
	Bodies time.Duration
}

// Source is one inbound endpoint: /in/<Name>.
type Source struct {
	Name     string
	Provider string
	// Secrets verify requests; any one of them suffices, so that a secret can be rotated.
	Secrets []Secret
	// To is the URL that events are delivered to. Empty: events are stored and delivered nowhere.
	To string
	// URL is the public address of the endpoint, for providers that sign it.
	URL string
	// MaxBody is the largest body that is read, in bytes.
	MaxBody int64
	// Tolerance is how far a signed timestamp may be from now. Zero: what the provider recommends.
	Tolerance time.Duration
	// HMAC configures the provider "hmac" and is zero for others.
	HMAC HMAC

	origin layer
	at     place
}

// HMAC describes the signature and the layout of a sender that the catalogue does not know.
type HMAC struct {
	// Header is the request header that carries the signature.
	Header string
	// Encoding of the signature: "hex" or "base64".
	Encoding string
	// Digest is "sha256", "sha1" or "sha512".
	Digest string
	// Prefix stands before the signature in the header, such as "sha256=".
	Prefix string
	// Key is where the event's key is: "json:id" or "header:X-Event-Id".
	Key string
	// Type is where the event's type is, in the same form. Empty: events have no type.
	Type string
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
