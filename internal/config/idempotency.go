package config

import (
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/settings"
)

// Idempotent is the mode of a source that is no provider's: its clients send requests with an
// Idempotency-Key to the service at To, each of which is to have its effect once.
const Idempotent = "idempotency"

// Idempotency says how the clients of a source in mode [Idempotent] are treated.
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

// idempotencyTable declares the settings of a source in mode [Idempotent] alone.
var idempotencyTable = settings.Table[Idempotency]{
	{Key: "idempotency.scope", Help: "for mode idempotency: `what` tells one caller from another, header:NAME, or none; repeatable",
		Bind: func(i *Idempotency) settings.Value {
			return settings.Names(&i.Scope, "header:Authorization", checkScope)
		}},
	{Key: "idempotency.wait", Help: "for mode idempotency: longest `time` that a copy waits for the answer to the first request; 0s if not set",
		Bind: func(i *Idempotency) settings.Value { return settings.Duration(&i.Wait, 0, longestPatience) }},
	{Key: "idempotency.optional_key", Help: "for mode idempotency: take requests without a key, which are forwarded as they are",
		Bind: func(i *Idempotency) settings.Value { return settings.Bool(&i.OptionalKey) }},
	{Key: "idempotency.strict_key", Help: "for mode idempotency: take keys only in double quotes",
		Bind: func(i *Idempotency) settings.Value { return settings.Bool(&i.StrictKey) }},
	{Key: "idempotency.headers", Help: "for mode idempotency: `name` of a header in which copies must agree; Content-Type if not set; repeatable",
		Bind: func(i *Idempotency) settings.Value { return settings.Names(&i.Headers, "Content-Type", checkDecisive) }},
	{Key: "idempotency.max_answer", Default: "256KiB", Help: "for mode idempotency: largest `size` of an answer",
		Bind: func(i *Idempotency) settings.Value { return settings.Size(&i.MaxAnswer, 1<<10, 64<<20) }},
	{Key: "idempotency.lease", Default: "15s", Help: "for mode idempotency: `time` after which a request is forwarded again if the gateway died meanwhile",
		Bind: func(i *Idempotency) settings.Value { return settings.Duration(&i.Lease, time.Second, time.Hour) }},
	{Key: "idempotency.remember", Default: "7d", Help: "for mode idempotency: `time` for which keys and answers are kept",
		Bind: func(i *Idempotency) settings.Value { return settings.Duration(&i.Remember, time.Minute, forever) }},
	{Key: "idempotency.new_keys", Default: "10000", Help: "for mode idempotency: `number` of new keys that one caller, and one address, may leave behind in an hour without a success",
		Bind: func(i *Idempotency) settings.Value { return settings.Count(&i.NewKeys, 1, 10_000_000) }},
	{Key: "idempotency.documentation", Help: "for mode idempotency: `URL` that tells clients how to use keys",
		Bind: func(i *Idempotency) settings.Value { return settings.Text(&i.Documentation, checkLink) }},
}

// ScopeHeaders returns what tells one caller from another; nothing if all share their keys.
func (i Idempotency) ScopeHeaders() []string {
	if slices.Equal(i.Scope, []string{scopeOfAll}) {
		return nil
	}
	return i.Scope
}
