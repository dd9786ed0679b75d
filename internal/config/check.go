package config

import (
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/settings"
)

// The variables that commands read for themselves. No setting has one of them: it would mean two things.
const (
	FileVariable       = "HOOKONCE_CONFIG"      // the configuration file
	AdminURLVariable   = "HOOKONCE_ADMIN_URL"   // the gateway that is asked
	AdminTokenVariable = "HOOKONCE_ADMIN_TOKEN" // the token to ask it with
)

var commandVariables = []string{FileVariable, AdminURLVariable, AdminTokenVariable}

// checkAll looks at what no single setting can tell.
func checkAll(r *settings.Report, cfg *Config, in Input) {
	checkRetention(r, cfg)
	checkTokens(r, cfg)
	checkAlerts(r, cfg)
	checkChannels(r, cfg)
	checkPair(r, cfg.origin, cfg.where("admin_tls.cert", "admin_tls.key"), "admin_tls")
	checkCells(r, cfg)
	checkNames(r, cfg)
	for i := range cfg.Sources {
		checkSource(r, cfg, &cfg.Sources[i], in.Environ)
		checkValidity(r, &cfg.Sources[i], in.now())
	}
	checkDestinations(r, cfg, in.Environ)
	checkSignatures(r, cfg)
	if len(cfg.Sources) == 0 && in.Path != "" && r.Clean() {
		r.Fault(settings.Place{Name: in.Path}, "no source is configured; add one under sources: with name, provider, secrets and to")
	}
	checkQueue(r, cfg)
	checkConnections(r, cfg)
	checkStop(r, cfg)
	checkTracing(r, cfg, in.Environ)
	checkPayloads(r, cfg)
	if cfg.StoreRead.Driver != "" && cfg.Store.Driver != Postgres {
		r.Fault(cfg.where("store_read"), "store_read: store is a file of SQLite, which has no standby; leave store_read out")
	}
	if cfg.Listen == cfg.Admin && !strings.HasSuffix(cfg.Listen, ":0") {
		r.Fault(cfg.where("admin"), "admin: %s is the address of listen as well; write another port", cfg.Admin)
	}
	known := slices.Concat(commandVariables, configTable.Variables(), sourceTable.Variables())
	settings.WarnUnknown(r, in.Environ, known, cfg.refersTo)
}

// checkPayloads refuses a right that means nothing, and a setting that nobody has the right for.
func checkPayloads(r *settings.Report, cfg *Config) {
	some := false
	for i := range cfg.AdminTokens {
		t := &cfg.AdminTokens[i]
		some = some || t.Payloads
		if t.Payloads && cfg.AdminPayloads == PayloadsOff {
			r.Fault(t.where("payloads"), "admin_tokens: %s may look at bodies, and admin_payloads is off; write admin_payloads: masked or full, or leave payloads out", t.Name)
		}
	}
	if !some && len(cfg.AdminTokens) > 0 && cfg.AdminPayloads != PayloadsOff {
		r.Fault(cfg.where("admin_payloads"), "admin_payloads: it is %s, and nobody may look; write payloads: true at one of admin_tokens, or leave admin_payloads out", cfg.AdminPayloads)
	}
}

func checkQueue(r *settings.Report, cfg *Config) {
	if q := cfg.Queue; q.Batch > q.Events {
		r.Fault(cfg.where("queue.batch", "queue.events"), "queue.batch: %d is more than queue.events, %d; write at most that", q.Batch, q.Events)
	}
}

func checkConnections(r *settings.Report, cfg *Config) {
	if all, one := cfg.MaxConnections, cfg.MaxConnectionsPerAddress; one > all {
		r.Fault(cfg.where("max_connections_per_address", "max_connections"), "max_connections_per_address: %d is more than max_connections, %d; write at most that", one, all)
	}
}

// checkStop leaves some of the time for stopping to what is under way.
func checkStop(r *settings.Report, cfg *Config) {
	if delay, all := cfg.ShutdownDelay, cfg.ShutdownTimeout; delay > 0 && delay >= all {
		r.Fault(cfg.where("shutdown_delay", "shutdown_timeout"), "shutdown_delay: %s leaves nothing of shutdown_timeout, %s, to what is under way; write less, or a longer shutdown_timeout",
			settings.ShowDuration(delay), settings.ShowDuration(all))
	}
}

func checkNames(r *settings.Report, cfg *Config) {
	seen := map[string]settings.Place{}
	for _, s := range cfg.Sources {
		at := s.where("name")
		if s.Name == "" {
			continue
		}
		if first, twice := seen[s.Name]; twice {
			r.Fault(at, "name: a source called %q exists already, at %s; write another name", s.Name, first)
			continue
		}
		seen[s.Name] = at
	}
}

// checkRetention holds the periods of all sources against each other, and then those of each that has its own.
func checkRetention(r *settings.Report, cfg *Config) {
	checkPeriods(r, cfg.RetentionOf(&Source{}), "", func(keys ...string) settings.Place { return cfg.where(keys...) })
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if _, own := s.within("retention."); own {
			checkPeriods(r, cfg.RetentionOf(s), " of source "+s.Name, func(keys ...string) settings.Place { return whereKept(cfg, s, keys...) })
		}
	}
}

// checkPeriods finds periods that make no sense together. where says which of some settings was written, and
// where.
func checkPeriods(r *settings.Report, keep Retention, whose string, where func(keys ...string) settings.Place) {
	for _, longer := range []struct {
		key    string
		period time.Duration
	}{{keepBodies, keep.Bodies}, {keepAttempts, keep.Attempts}, {keepAnswers, keep.Answers}} {
		if longer.period > keep.IDs && (longer.key == keepBodies || longer.period != keep.Bodies) {
			r.Fault(where(longer.key, keepIDs), "%s: %s%s is longer than retention.ids, %s; write at most that", longer.key, settings.ShowDuration(longer.period), whose, settings.ShowDuration(keep.IDs))
		}
	}
	if keep.Attempts < keep.Bodies {
		r.Fault(where(keepAttempts, keepBodies), "%s: %s%s is shorter than retention.bodies, %s, and without its attempts an event cannot be delivered again; write at least that, or nothing",
			keepAttempts, settings.ShowDuration(keep.Attempts), whose, settings.ShowDuration(keep.Bodies))
	}
}

// minToken is how short a token may be, in bytes: less can be guessed.
const minToken = 16

// checkTokens looks for what tokens lack, and refuses to open the admin listener to others without any.
func checkTokens(r *settings.Report, cfg *Config) {
	names, secrets := map[string]settings.Place{}, map[string]settings.Place{}
	for i := range cfg.AdminTokens {
		t := &cfg.AdminTokens[i]
		for _, need := range []struct{ key, example string }{{"name", "oncall"}, {"token", `"env:ADMIN_TOKEN"`}} {
			if !t.origin.Has(need.key) {
				r.Fault(t.at, "an admin token lacks its %s; write %s: and a value such as %s", need.key, need.key, need.example)
			}
		}
		if first, twice := names[t.Name]; twice && t.Name != "" {
			r.Fault(t.where("name"), "name: an admin token called %q exists already, at %s; write another name", t.Name, first)
		}
		names[t.Name] = t.where("name")
		checkToken(r, t, secrets)
	}
	if !isLoopbackAddress(cfg.Admin) && len(cfg.AdminTokens) == 0 {
		r.Fault(cfg.origin.Element("admin", 0), "admin: %q is open to other machines, and there are no admin_tokens; add one, or write a loopback address, such as 127.0.0.1:8081",
			cfg.Admin)
	}
}

// checkToken holds the secret of a token against what was seen of others. One that could not be resolved
// is reported already.
func checkToken(r *settings.Report, t *AdminToken, seen map[string]settings.Place) {
	value := t.Token.Reveal()
	if value == "" {
		return
	}
	if len(value) < minToken {
		r.Fault(t.where("token"), "token: it has %d bytes, which can be guessed; make one of at least %d, such as with: openssl rand -hex 24", len(value), minToken)
	}
	if first, twice := seen[value]; twice {
		r.Fault(t.where("token"), "token: this is the token of another one as well, at %s; give each bearer a token of their own", first)
	}
	seen[value] = t.where("token")
}
