// Package doctor looks at a configuration, its store and the servers beside it for what would lose events,
// repeat them, or stop them.
//
// A check is one function in one of the tables of checks: it asks one question and returns what it found.
// Checks change nothing, and none depends on another, except that the store must be open for those that
// ask it.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

// Level says how bad a finding is.
type Level string

// The levels. A fault loses or repeats events, or stops the program, sooner or later; a warning does so
// under circumstances that the text names.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Fault   Level = "fault"
)

// Finding is what one check has to say.
type Finding struct {
	// Check is the check's name, such as "clock".
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Text says what was found and what it means.
	Text string `json:"text"`
	// Advice says what to change. Empty if all is well.
	Advice string `json:"advice,omitempty"`
}

// Patient is what is to be looked at.
type Patient struct {
	// Config is the configuration, checked. It may have no sources: then only the store is looked at,
	// as that of a program that uses the library.
	Config *config.Config
	// Redis is the URL of a Redis server that holds claims. Empty: there is none.
	Redis string
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
}

// serves reports whether a gateway is looked at, and not a program with the library.
func (p Patient) serves() bool { return len(p.Config.Sources) > 0 }

// sources are the modes of those that the gateway has, by their names.
func (p Patient) sources() map[string]string {
	modes := make(map[string]string)
	for _, s := range p.Config.Sources {
		modes[s.Name] = s.Mode
	}
	return modes
}

// destinations are the names of those that the gateway delivers to.
func (p Patient) destinations() map[string]bool {
	names := make(map[string]bool)
	for _, d := range p.Config.AllDestinations() {
		names[d.Name] = true
	}
	return names
}

// patience bounds each check.
const patience = 10 * time.Second

// Examine runs every check that applies and returns all findings, in the order of the tables. A check that
// fails says so in a finding of its own.
func Examine(ctx context.Context, p Patient) []Finding {
	if p.Now == nil {
		p.Now = time.Now
	}
	found := run(ctx, p, configChecks())
	found = append(found, examineStore(ctx, p)...)
	if p.Redis != "" {
		found = append(found, run(ctx, p.Redis, redisChecks())...)
	}
	return found
}

// Healthy reports whether none of the findings is a fault.
func Healthy(found []Finding) bool {
	for _, f := range found {
		if f.Level == Fault {
			return false
		}
	}
	return true
}

// check asks one question about an S.
type check[S any] struct {
	name string
	look func(ctx context.Context, subject S) ([]Finding, error)
}

func run[S any](ctx context.Context, subject S, checks []check[S]) (all []Finding) {
	for _, c := range checks {
		all = append(all, c.run(ctx, subject)...)
	}
	return all
}

func (c check[S]) run(ctx context.Context, subject S) []Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := c.look(ctx, subject)
	if err != nil {
		found = append(found, Finding{Level: Warning, Text: "this could not be found out: " + oneLine(err), Advice: "run the check as a role that may ask, or look yourself"})
	}
	for i := range found {
		found[i].Check = c.name
	}
	return found
}

// one is the result of a check that has a single finding.
func one(f Finding) ([]Finding, error) { return []Finding{f}, nil }

func good(format string, args ...any) Finding {
	return Finding{Level: OK, Text: fmt.Sprintf(format, args...)}
}

func doubt(advice, format string, args ...any) Finding {
	return Finding{Level: Warning, Text: fmt.Sprintf(format, args...), Advice: advice}
}

func bad(advice, format string, args ...any) Finding {
	return Finding{Level: Fault, Text: fmt.Sprintf(format, args...), Advice: advice}
}
