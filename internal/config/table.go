package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of a length of time that has none of its own.
const (
	briefly = time.Millisecond
	forever = 100 * 365 * day
)

// settings declares every setting outside sources.
var settings = []field[Config]{
	{key: "listen", def: "127.0.0.1:8080", help: "`host:port` that providers post to, at /in/<source>",
		bind: func(c *Config) value { return address{to: &c.Listen} }, restart: true},
	{key: "admin", def: "127.0.0.1:8081", help: "`host:port` for people and machines: the API, /healthz, /readyz and /metrics; loopback unless there are admin_tokens",
		bind: func(c *Config) value { return address{to: &c.Admin} }, restart: true},
	{key: "store", def: "sqlite:hookonce.db", help: "where events are kept: sqlite:PATH or postgres://... as a `DSN`",
		bind: func(c *Config) value { return storeValue{&c.Store} }, restart: true},
	{key: "schema", def: "hookonce", help: "`name` of the Postgres schema that holds the tables",
		bind: func(c *Config) value { return text{&c.Schema, checkSchema} }, restart: true},
	{key: "migrate", def: "true", help: "bring a Postgres schema up to date at start",
		bind: func(c *Config) value { return boolean{&c.Migrate} }, restart: true},
	{key: "log.level", def: "info", help: "least `level` to log: debug, info, warn or error",
		bind: func(c *Config) value { return level{&c.LogLevel} }},
	{key: "log.format", def: "text", help: "`format` of the log: text or json",
		bind: func(c *Config) value { return choice{&c.LogFormat, []string{"text", "json"}} }, restart: true},
	{key: "shutdown_timeout", def: "20s", help: "longest `time` that a clean stop may take",
		bind: func(c *Config) value { return duration{&c.ShutdownTimeout, briefly, time.Hour} }},
	{key: "shutdown_delay", def: "0s", help: "`time` at the beginning of a stop in which /readyz answers 503 already and requests are still served",
		bind: func(c *Config) value { return duration{&c.ShutdownDelay, 0, time.Hour} }},
	{key: "max_connections", def: "4096", help: "`number` of connections that listen may have at once, and at most half of the process's file descriptors",
		bind: func(c *Config) value { return count{&c.MaxConnections, 1, 1 << 20} }},
	{key: "max_connections_per_address", help: "`number` of them that one address, or /64 of IPv6, may have; a quarter of max_connections if not set",
		bind: func(c *Config) value { return count{&c.MaxConnectionsPerAddress, 1, 1 << 20} }},
	{key: "trusted_proxies", help: "`network` of proxies whose X-Forwarded-For is believed; repeatable",
		bind: func(c *Config) value { return prefixes{&c.TrustedProxies} }},
	{key: "queue.events", def: "8192", help: "`number` of events that may wait for their commit before requests are answered 503",
		bind: func(c *Config) value { return count{&c.Queue.Events, 1, 1 << 20} }, restart: true},
	{key: "queue.bytes", def: "64MiB", help: "`size` of all events that may wait for their commit",
		bind: func(c *Config) value { return size{&c.Queue.Bytes, 1 << 20, 64 << 30} }, restart: true},
	{key: "queue.batch", def: "256", help: "largest `number` of events in one commit",
		bind: func(c *Config) value { return count{&c.Queue.Batch, 1, 4096} }, restart: true},
	{key: "delivery.concurrency", def: "64", help: "`number` of deliveries to one destination under way at once",
		bind: func(c *Config) value { return count{&c.Delivery.Concurrency, 1, 10_000} }},
	{key: "delivery.timeout", def: "15s", help: "longest `time` that one delivery may take",
		bind: func(c *Config) value { return duration{&c.Delivery.Timeout, briefly, time.Hour} }},
	{key: "delivery.rate", help: "`number` of attempts per second to one destination; no bound if not set",
		bind: func(c *Config) value { return rate{&c.Delivery.Rate} }},
	{key: "delivery.attempts", def: "13", help: "`number` of attempts before a delivery is dead",
		bind: func(c *Config) value { return count{&c.Delivery.Attempts, 1, 1000} }},
	{key: "delivery.backoff", def: "5s", help: "`time` to wait after the first failed attempt; each further wait is three times as long",
		bind: func(c *Config) value { return duration{&c.Delivery.Backoff, briefly, day} }},
	{key: "delivery.backoff_max", def: "1d", help: "longest `time` to wait between two attempts",
		bind: func(c *Config) value { return duration{&c.Delivery.BackoffMax, briefly, 30 * day} }},
	{key: "delivery.give_up", def: "7d", help: "`time` after which a delivery is dead, whatever attempts are left",
		bind: func(c *Config) value { return duration{&c.Delivery.GiveUp, briefly, forever} }},
	{key: "delivery.permanent", help: "`status` of a destination after which a delivery is dead at once, besides 410; repeatable",
		bind: func(c *Config) value { return numbers{&c.Delivery.Permanent, "422", checkPermanent} }},
	{key: "delivery.breaker", def: "true", help: "only probe a destination that is ill, and let it recover by and by",
		bind: func(c *Config) value { return boolean{&c.Delivery.Breaker} }},
	{key: "delivery.breaker_failures", def: "10", help: "`number` of failures in a row that show that a destination is ill",
		bind: func(c *Config) value { return count{&c.Delivery.BreakerFailures, 1, 10_000} }},
	{key: "delivery.breaker_pause", help: "`time` from one probe of an ill destination to the next, at first; 1s, or backoff if that is shorter, if not set",
		bind: func(c *Config) value { return duration{&c.Delivery.BreakerPause, briefly, day} }},
	{key: "delivery.breaker_pause_max", help: "longest such `time`: each is twice as long as the one before; 4s, or the last wait between attempts if that is shorter, if not set",
		bind: func(c *Config) value { return duration{&c.Delivery.BreakerPauseMax, briefly, day} }},
	{key: "delivery.allow_private", def: "true", help: "deliver to loopback, private and link-local addresses",
		bind: func(c *Config) value { return boolean{&c.Delivery.AllowPrivate} }},
	{key: "delivery.ports", help: "`port` that destinations may have; any if not set; repeatable",
		bind: func(c *Config) value { return numbers{&c.Delivery.Ports, "443", checkPort} }},
	{key: "delivery.lease", def: "9s", help: "`time` after which the deliveries of a process that died are taken over",
		bind: func(c *Config) value { return duration{&c.Delivery.Lease, 100 * time.Millisecond, time.Hour} }, restart: true},
	{key: "retention.ids", def: "90d", help: "`time` for which ids are remembered, so that late copies are recognised",
		bind: func(c *Config) value { return duration{&c.Retention.IDs, time.Minute, forever} }},
	{key: "retention.bodies", def: "7d", help: "`time` for which bodies of finished events are kept",
		bind: func(c *Config) value { return duration{&c.Retention.Bodies, time.Minute, forever} }},
	{key: "retention.attempts", help: "`time` for which the attempts of finished events are kept; as long as bodies if not set",
		bind: func(c *Config) value { return duration{&c.Retention.Attempts, time.Minute, forever} }},
	{key: "retention.answers", help: "`time` for which answers to waiting senders are kept for copies; as long as bodies if not set",
		bind: func(c *Config) value { return duration{&c.Retention.Answers, time.Minute, forever} }},
	{key: "retention.audits", def: "400d", help: "`time` for which it is on record what operators did",
		bind: func(c *Config) value { return duration{&c.RetentionAudits, time.Minute, forever} }},
}

// sourceSettings declares every setting of a source. In the environment and on the command line they
// describe the one source that --source names.
var sourceSettings = slices.Concat(endpointSettings, idempotencySettings)

// endpointSettings are those of every source.
var endpointSettings = []field[Source]{
	{key: "name", flag: "source", help: "`name` of the source that the following flags describe or override",
		bind: func(s *Source) value { return text{&s.Name, checkName} }},
	{key: "provider", help: "`name` of the provider that sends to it, such as stripe",
		bind: func(s *Source) value { return text{&s.Provider, checkProvider} }},
	{key: "secrets", flag: "secret", help: "its secret as a `reference`: env:NAME or file:PATH; repeat while rotating",
		bind: func(s *Source) value { return secrets{references{&s.Secrets}} }},
	{key: "to", help: "`URL` that its events are delivered to",
		bind: func(s *Source) value { return endpoint{&s.To, "routes: with the name of a destination"} }},
	{key: "sign_as", help: "`whose` signature is made anew for the application at --to where it would fail: provider, or none; provider if not set",
		bind: func(s *Source) value { return choice{&s.SignAs, []string{SignProvider, SignNone}} }},
	{key: "app_secret", help: "the provider's secret with which that application verifies, as a `reference`: env:NAME or file:PATH; those of the source if not set",
		bind: func(s *Source) value { return reference{&s.AppSecret} }},
	{key: "app_url", help: "`URL` at which that application believes to be called, for providers that sign it; that of --to if not set",
		bind: func(s *Source) value { return endpoint{to: &s.AppURL} }},
	{key: "rate", help: "`number` of requests per second that are taken; no bound if not set",
		bind: func(s *Source) value { return rate{&s.Rate} }},
	{key: "burst", help: "`number` of requests that are taken at once; twice the rate if not set",
		bind: func(s *Source) value { return count{&s.Burst, 1, 1_000_000} }},
	{key: "allow", help: "`network` that requests may come from; any if not set; repeatable",
		bind: func(s *Source) value { return prefixes{&s.Allow} }},
	{key: "twins.drop", help: "`type` of events that are not delivered when they are the second for one change; repeatable",
		bind: func(s *Source) value {
			return words{to: &s.Twins.Drop, sample: "checkout.session.completed", check: checkExact}
		}},
	{key: "mode", help: "`when` its sender is answered: async, when the event is stored, sync, with the destination's answer, observe, as sync, and all else is only recorded, or idempotency, for requests with an Idempotency-Key; async if not set",
		bind: func(s *Source) value { return choice{&s.Mode, []string{Async, Sync, Observe, Idempotent}} }},
	{key: "deadline", help: "longest `time` that its sender is kept waiting; what the provider is known to wait, less a margin, if not set",
		bind: func(s *Source) value { return duration{&s.Deadline, 100 * time.Millisecond, 25 * time.Second} }},
	{key: "on_store_down", help: "`what` happens while the store is unavailable: closed, senders are told to come again, or open, events are delivered past it; closed if not set",
		bind: func(s *Source) value { return choice{&s.OnStoreDown, []string{Closed, Open}} }},
	{key: "open_types", help: "`pattern` for the types of events that on_store_down: open is for; all if not set; repeatable",
		bind: func(s *Source) value { return names{words{to: &s.OpenTypes, sample: "cart.*", check: checkPattern}} }},
	{key: "url", help: "its public `URL`, for providers that sign it",
		bind: func(s *Source) value { return endpoint{to: &s.URL} }},
	{key: "handshakes", help: "answer the provider's challenges",
		bind: func(s *Source) value { return boolean{&s.Handshakes} }},
	{key: "token", help: "what handshakes ask for besides the secret, as a `reference`: env:NAME or file:PATH",
		bind: func(s *Source) value { return reference{&s.Token} }},
	{key: "retention.ids", flag: "source-retention-ids", help: "`time` for which its ids are remembered; that of all sources if not set, like the following",
		bind: func(s *Source) value { return duration{&s.Retention.IDs, time.Minute, forever} }},
	{key: "retention.bodies", flag: "source-retention-bodies", help: "`time` for which its bodies are kept",
		bind: func(s *Source) value { return duration{&s.Retention.Bodies, time.Minute, forever} }},
	{key: "retention.attempts", flag: "source-retention-attempts", help: "`time` for which its attempts are kept",
		bind: func(s *Source) value { return duration{&s.Retention.Attempts, time.Minute, forever} }},
	{key: "retention.answers", flag: "source-retention-answers", help: "`time` for which its answers are kept for copies",
		bind: func(s *Source) value { return duration{&s.Retention.Answers, time.Minute, forever} }},
	{key: "max_body", help: "largest `size` of a request's body; the provider's own limit if not set",
		bind: func(s *Source) value { return size{&s.MaxBody, 1, 256 << 20} }},
	{key: "tolerance", help: "how far a signed timestamp may be from now, as a `time`; the provider's own if not set",
		bind: func(s *Source) value { return duration{&s.Tolerance, time.Second, day} }},
	{key: "hmac.header", help: "for provider hmac: header `name` of the signature; X-Signature if not set",
		bind: func(s *Source) value { return text{&s.HMAC.Header, checkHeader} }},
	{key: "hmac.encoding", help: "for provider hmac: `encoding` of the signature: hex, base64 or base64url; hex if not set",
		bind: func(s *Source) value { return choice{&s.HMAC.Encoding, []string{"hex", "base64", "base64url"}} }},
	{key: "hmac.digest", help: "for provider hmac: `digest`: sha256, sha1 or sha512; sha256 if not set",
		bind: func(s *Source) value { return choice{&s.HMAC.Digest, []string{"sha256", "sha1", "sha512"}} }},
	{key: "hmac.prefix", help: "for provider hmac: `text` before the signature in its header, such as sha256=",
		bind: func(s *Source) value { return text{to: &s.HMAC.Prefix} }},
	{key: "hmac.form", help: "for provider hmac: `form` of the secret: utf8, base64, hex or whsec; utf8 if not set",
		bind: func(s *Source) value { return choice{&s.HMAC.Form, []string{"utf8", "base64", "hex", "whsec"}} }},
	{key: "hmac.key", help: "for provider hmac: `where` a part of the event's key is; json:$.id if not set; repeatable",
		bind: func(s *Source) value { return words{to: &s.HMAC.Key, sample: "json:$.id"} }},
	{key: "hmac.type", help: "for provider hmac: `where` the event's type is; json:$.type if not set",
		bind: func(s *Source) value { return text{to: &s.HMAC.Type} }},
}

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
	schemaPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// maxName keeps names usable as labels and in URLs.
const maxName = 64

func checkName(s string) error {
	if len(s) > maxName {
		return fmt.Errorf("the name has %d characters; write at most %d", len(s), maxName)
	}
	if !namePattern.MatchString(s) {
		return fmt.Errorf("%q cannot be a name; write lower-case letters, digits, - and _, beginning with a letter or digit", s)
	}
	return nil
}

func checkSchema(s string) error {
	if !schemaPattern.MatchString(s) || strings.HasPrefix(s, "pg_") {
		return fmt.Errorf("%q cannot be a schema; write at most 48 lower-case letters, digits and _, beginning with a letter, not with pg_", s)
	}
	return nil
}

func checkHeader(s string) error {
	if !headerPattern.MatchString(s) {
		return errors.New("this is not the name of a header; write one like X-Signature")
	}
	return nil
}
