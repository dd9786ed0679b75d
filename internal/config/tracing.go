package config

import (
	"net/url"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/settings"
)

// Tracing says where traces are exported to.
type Tracing struct {
	// Endpoint is the base URL of a collector that speaks OTLP over HTTP. Empty: nothing is traced.
	Endpoint string
	// Ratio is the part of the traces that is exported, from 0 to 1, of those that no trusted sender decides on.
	Ratio float64
	// Service is the name of this service in traces.
	Service string
	// Header is the name of a header that the collector asks for, and Secret its whole value. No Secret: none is sent.
	Header string
	Secret settings.Secret
	// TLS has the CA of the collector's certificate; all else means nothing.
	TLS TLS
}

// On reports whether anything is traced.
func (t *Tracing) On() bool { return t.Endpoint != "" }

// tracesPath is where a collector takes traces, below its base URL.
const tracesPath = "/v1/traces"

// URL is where traces are POSTed to.
func (t *Tracing) URL() string {
	base := strings.TrimRight(t.Endpoint, "/")
	if strings.HasSuffix(base, tracesPath) {
		return base
	}
	return base + tracesPath
}

// What a source does with the trace context of its senders.
const (
	LinkTrace  = "link"  // a new trace is linked to it
	TrustTrace = "trust" // an authentic sender's trace goes on
)

// tracingEndpoint is the setting without which the others below tracing mean nothing.
const tracingEndpoint = "tracing.endpoint"

// tracingTable declares the settings of traces.
var tracingTable = settings.Table[Config]{
	{Key: tracingEndpoint, Help: "base `URL` of a collector that takes traces as OTLP over HTTP, such as http://127.0.0.1:4318; nothing is traced if not set",
		Bind: func(c *Config) settings.Value { return settings.URLLike(&c.Tracing.Endpoint, "http://127.0.0.1:4318") }, Restart: true},
	{Key: "tracing.ratio", Default: "1", Help: "`part` of the traces that is exported, from 0 to 1",
		For:  tracing,
		Bind: func(c *Config) settings.Value { return settings.Ratio(&c.Tracing.Ratio) }, Restart: true},
	{Key: "tracing.service", Default: "hookonce", Help: "`name` of this service in traces",
		For:  tracing,
		Bind: func(c *Config) settings.Value { return settings.Text(&c.Tracing.Service, checkName) }, Restart: true},
	{Key: "tracing.header", Default: "Authorization", Help: "`name` of the header that has tracing.secret",
		For:  func(c *Config) bool { return c.Tracing.Secret.Reference() != "" },
		Bind: func(c *Config) settings.Value { return settings.Text(&c.Tracing.Header, checkHeader) }, Restart: true},
	{Key: "tracing.secret", Help: "what the collector asks for, the whole value of that header, such as Bearer and a token, as a `reference`: env:NAME or file:PATH",
		Bind: func(c *Config) settings.Value { return settings.OutsideReference(&c.Tracing.Secret) }, Restart: true},
	{Key: "tracing.ca", Help: "PEM `file` with the certificates that the collector's may be signed by, instead of the system's",
		Bind: func(c *Config) settings.Value { return settings.File(&c.Tracing.TLS.CA, &c.Tracing.TLS.pem.ca) }, Restart: true},
}

func tracing(c *Config) bool { return c.Tracing.On() }

// checkTracing holds the settings of traces against each other, and against the variables by which other programs are told the
// same.
func checkTracing(r *settings.Report, cfg *Config, environ []string) {
	t := &cfg.Tracing
	if !t.On() {
		if at, written := settings.Within(cfg.origin, configTable, "tracing."); written && !cfg.origin.Has(tracingEndpoint) {
			r.Fault(at, "tracing: nothing is traced without a collector; write tracing.endpoint as well, such as http://127.0.0.1:4318, or remove this")
		}
		for i := range cfg.Sources {
			if s := &cfg.Sources[i]; s.Trace == TrustTrace {
				r.Fault(s.where("trace"), "trace: source %q trusts the traces of its senders, and nothing is traced; write tracing.endpoint as well, or remove it", s.Name)
			}
		}
		return
	}
	u, err := url.Parse(t.Endpoint)
	if err != nil {
		return // reported already
	}
	at := cfg.where(tracingEndpoint)
	if u.User != nil {
		r.Fault(at, "tracing.endpoint: a user and password do not belong into the address, which logs show; write them as tracing.secret, such as env:OTLP_AUTHORIZATION")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		r.Fault(at, "tracing.endpoint: a collector's address has no query; remove it")
	}
	if u.Port() == "4317" {
		r.Fault(at, "tracing.endpoint: 4317 is the port of OTLP over gRPC, which is not spoken here; write that of OTLP over HTTP, usually 4318")
	}
	switch {
	case u.Scheme == "http" && t.TLS.CA != "":
		r.Fault(cfg.where("tracing.ca"), "tracing.ca: the endpoint %s is not https; write https://, or remove it", t.Endpoint)
	case u.Scheme == "http" && t.Secret.Reference() != "" && !isLoopback(u.Hostname()):
		r.Warn(at, "tracing.endpoint: the secret is sent unencrypted to %s; write https://", u.Host)
	}
	if cfg.origin.Has("tracing.header") && !cfg.origin.Has("tracing.secret") {
		r.Fault(cfg.where("tracing.header"), "tracing.header: it is the name of the header of tracing.secret, which is not written; write that as well, or remove it")
	}
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Mode == Observe && s.has("trace") {
			r.Fault(s.where("trace"), "trace: source %q has mode: observe, which hands traces on as they come and begins none; remove it until the mode is another", s.Name)
		}
	}
	if trusts := slices.ContainsFunc(cfg.Sources, func(s Source) bool { return s.Trace == TrustTrace }); t.Ratio == 0 && !trusts {
		r.Fault(cfg.where("tracing.ratio"), "tracing.ratio: of 0 nothing is exported, because no source has trace: trust; write more, or remove tracing")
	}
	warnOfVariables(r, environ)
}

// warnOfVariables names variables of OpenTelemetry's that other programs go by, and that count for nothing here: what a gateway
// does stands in one place.
func warnOfVariables(r *settings.Report, environ []string) {
	var ignored []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		for _, begin := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_TRACES_", "OTEL_BSP_", "OTEL_SPAN_", "OTEL_SERVICE_NAME", "OTEL_SDK_DISABLED", "OTEL_PROPAGATORS"} {
			if strings.HasPrefix(name, begin) && !slices.Contains(ignored, name) {
				ignored = append(ignored, name)
			}
		}
	}
	if slices.Sort(ignored); len(ignored) > 0 {
		r.Warn(settings.Place{Name: "the environment"}, "%s counts for nothing here; the settings below tracing: do", strings.Join(ignored, ", "))
	}
}
