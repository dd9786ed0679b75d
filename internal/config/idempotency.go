package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/header"
)

// Idempotent is the mode of a source that is no provider's: its clients send requests with an
// Idempotency-Key to the service at To, each of which is to have its effect once.
const Idempotent = "idempotency"

// Idempotency says how the clients of a source in mode [Idempotent] are treated. See
// [Idempotency.WithDefaults] for what is zero.
type Idempotency struct {
	// Scope says what tells one caller from another: header:NAME, all of them together, or none.
	Scope []string
	// Headers are the header fields in which copies must agree. None: Content-Type.
	Headers []string
	// StrictKey takes keys only in quotes; OptionalKey takes requests without one.
	StrictKey, OptionalKey bool
	// Wait is how long a copy waits for the answer of the first request.
	Wait time.Duration
	// Lease is after how long a copy is forwarded again if the process died that forwarded the first.
	Lease time.Duration
	// MaxAnswer is the largest answer that is kept, in bytes.
	MaxAnswer int64
	// Remember is how long keys and answers are kept.
	Remember time.Duration
	// NewKeys is how many new keys one caller, and the callers of one address, may leave behind in an hour without
	// a success.
	NewKeys int
	// Documentation is where clients read about their faults.
	Documentation string
}

// WithDefaults returns the settings with the defaults of those that have one and are not set.
func (i Idempotency) WithDefaults() Idempotency {
	i.Lease = cmp.Or(i.Lease, 15*time.Second)
	i.MaxAnswer = cmp.Or(i.MaxAnswer, 256<<10)
	i.Remember = cmp.Or(i.Remember, 7*day)
	i.NewKeys = cmp.Or(i.NewKeys, 10_000)
	return i
}

// anyone is the scope that all callers share.
const anyone = "none"

// idempotencySettings are those of a source in mode [Idempotent] alone.
var idempotencySettings = []field[Source]{
	{key: "idempotency.scope", help: "for mode idempotency: `what` tells one caller from another, header:NAME, or none; repeatable",
		bind: func(s *Source) value {
			return names{words{to: &s.Idempotency.Scope, sample: "header:Authorization", check: checkScope}}
		}},
	{key: "idempotency.wait", help: "for mode idempotency: longest `time` that a copy waits for the answer to the first request; 0s if not set",
		bind: func(s *Source) value { return duration{&s.Idempotency.Wait, 0, longestPatience} }},
	{key: "idempotency.optional_key", help: "for mode idempotency: take requests without a key, which are forwarded as they are",
		bind: func(s *Source) value { return boolean{&s.Idempotency.OptionalKey} }},
	{key: "idempotency.strict_key", help: "for mode idempotency: take keys only in double quotes",
		bind: func(s *Source) value { return boolean{&s.Idempotency.StrictKey} }},
	{key: "idempotency.headers", help: "for mode idempotency: `name` of a header in which copies must agree; Content-Type if not set; repeatable",
		bind: func(s *Source) value {
			return names{words{to: &s.Idempotency.Headers, sample: "Content-Type", check: checkDecisive}}
		}},
	{key: "idempotency.max_answer", help: "for mode idempotency: largest `size` of an answer; 256KiB if not set",
		bind: func(s *Source) value { return size{&s.Idempotency.MaxAnswer, 1 << 10, 64 << 20} }},
	{key: "idempotency.lease", help: "for mode idempotency: `time` after which a request is forwarded again if the gateway died meanwhile; 15s if not set",
		bind: func(s *Source) value { return duration{&s.Idempotency.Lease, time.Second, time.Hour} }},
	{key: "idempotency.remember", help: "for mode idempotency: `time` for which keys and answers are kept; 7d if not set",
		bind: func(s *Source) value { return duration{&s.Idempotency.Remember, time.Minute, forever} }},
	{key: "idempotency.new_keys", help: "for mode idempotency: `number` of new keys that one caller, and one address, may leave behind in an hour without a success; 10000 if not set",
		bind: func(s *Source) value { return count{&s.Idempotency.NewKeys, 1, 10_000_000} }},
	{key: "idempotency.documentation", help: "for mode idempotency: `URL` that tells clients how to use keys",
		bind: func(s *Source) value { return text{&s.Idempotency.Documentation, checkLink} }},
}

// checkLink accepts an address that can stand in a header Link.
func checkLink(s string) error {
	if strings.ContainsAny(s, `<>"`) {
		return errors.New("the URL has a character that must be escaped there; write %3C for <, %3E for > and %22 for a quote")
	}
	return checkURL(s)
}

func checkScope(s string) error {
	name, ok := strings.CutPrefix(s, "header:")
	if s == anyone {
		return nil
	}
	if ok && checkHeader(name) == nil {
		return checkDecisive(name)
	}
	return errors.New("this does not tell callers apart; write header: and the name of a header, such as header:Authorization, or none")
}

// checkDecisive accepts the headers by which callers or requests can be told apart: what is looked at has to be what
// the service sees.
func checkDecisive(name string) error {
	switch {
	case header.Rewritten(name):
		return fmt.Errorf("%s does not reach the service as it was sent: it belongs to the connection, or is set by the gateway; name a header that the service sees, such as Authorization", name)
	case header.Fold(name) == "idempotency-key":
		return fmt.Errorf("%s is the key itself, and tells neither callers nor requests apart; remove it", name)
	}
	return checkHeader(name)
}

// ScopeHeaders returns what tells one caller from another; nothing if all share their keys.
func (i Idempotency) ScopeHeaders() []string {
	if slices.Equal(i.Scope, []string{anyone}) {
		return nil
	}
	return i.Scope
}

// checkIdempotency holds a source in mode [Idempotent] against what that needs.
func (l *loader) checkIdempotency(s *Source) {
	for _, f := range sourceSettings {
		if s.has(f.key) && !slices.Contains(forIdempotent, f.key) && !strings.HasPrefix(f.key, "idempotency.") {
			l.fault(s.where(f.key), "%s: source %q has mode: idempotency, whose requests are no events of a provider; remove it", f.key, s.Name)
		}
	}
	for _, key := range []string{routesKey, specKey} {
		if s.has(key) {
			l.fault(s.where(key), "%s: source %q has mode: idempotency, whose requests go to the one service at to:; remove it", key, s.Name)
		}
	}
	switch u, err := url.Parse(s.To); {
	case !s.has("to"):
		l.fault(s.at, "source %q lacks its service; write to: and the URL that the paths of requests are added to", s.Name)
	case err == nil && (u.User != nil || u.RawQuery != ""):
		l.fault(s.where("to"), "to: with mode: idempotency every request has its own user and query; leave out those of the URL")
	}
	switch scope := s.Idempotency.Scope; {
	case !s.has("idempotency.scope"):
		l.fault(s.where("mode"), `mode: with idempotency, whoever sends the key of another gets the other's answer, unless callers are told apart; write idempotency: {scope: ["header:NAME"]} with the header by which the service knows them, or scope: none`)
	case slices.Contains(scope, anyone) && len(scope) > 1:
		l.fault(s.where("idempotency.scope"), "idempotency.scope: none stands alone; remove it, or the others")
	}
	l.checkTwinHeaders(s)
}

// checkTwinHeaders finds headers that some applications take for one and the same, so that no request could have both.
func (l *loader) checkTwinHeaders(s *Source) {
	seen := map[string]string{}
	for _, name := range slices.Concat(s.Idempotency.ScopeHeaders(), s.Idempotency.Headers) {
		name = strings.TrimPrefix(name, "header:")
		folded := header.Fold(name)
		if other, ok := seen[folded]; ok && !strings.EqualFold(name, other) {
			l.fault(s.where("mode"), "idempotency: %s and %s are the same header to some applications; keep the one that the service reads", other, name)
		}
		seen[folded] = name
	}
}

// forIdempotent are the settings that make sense for a source in mode [Idempotent], besides its own.
var forIdempotent = []string{"name", "mode", "to", "rate", "burst", "allow", "deadline", "max_body"}

// checkNotIdempotent finds settings that need the mode [Idempotent] in a source that has another.
func (l *loader) checkNotIdempotent(s *Source) {
	if at, written := s.within("idempotency."); written {
		l.fault(at, "idempotency: these settings are for mode: idempotency; remove them, or write that mode")
	}
}
