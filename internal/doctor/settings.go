package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/provider"
)

// configChecks look at the configuration alone. That it makes sense is checked already.
func configChecks() []check[Patient] {
	return []check[Patient]{
		{"configuration", warnings},
		{"retention", retention},
		{"secrets", secrets},
	}
}

func warnings(_ context.Context, p Patient) (found []Finding, _ error) {
	for _, text := range p.Config.Warnings {
		found = append(found, doubt("change the setting, or leave it if it is meant so", "%s", text))
	}
	switch n := len(p.Config.Sources); {
	case n == 0 && len(found) == 0:
		return one(good("no sources: only the store is looked at"))
	case len(found) == 0:
		return one(good("%d source(s), and nothing to remark on", n))
	}
	return found, nil
}

// retention holds how long ids are kept against how long senders send again. Less than twice that does not
// load.
func retention(_ context.Context, p Patient) (found []Finding, _ error) {
	for i := range p.Config.Sources {
		s := &p.Config.Sources[i]
		if s.Mode == config.Idempotent {
			found = append(found, good("%s: keys and answers are kept for %s", s.Name, days(s.Idempotency.WithDefaults().Remember)))
			continue
		}
		window, err := windowOf(s)
		switch {
		case err != nil:
			return found, err
		case window == 0:
			found = append(found, good("%s: nothing is known about how long %s sends an event again; ids are kept for %s", s.Name, s.Provider, days(p.Config.Retention.IDs)))
		default:
			found = append(found, good("%s: %s sends an event again for up to %s; ids are kept for %s", s.Name, s.Provider, days(window), days(p.Config.Retention.IDs)))
		}
	}
	return found, nil
}

func windowOf(s *config.Source) (time.Duration, error) {
	if s.Spec != nil {
		return s.Spec.Limits.Window(), nil
	}
	known, err := provider.Lookup(s.Provider)
	return known.Limits.Window(), err
}

// soon is how long before the end of a secret somebody should know.
const soon = 14 * 24 * time.Hour

// secrets finds sources whose last secret ends soon.
func secrets(_ context.Context, p Patient) (found []Finding, _ error) {
	now := p.Now()
	for i := range p.Config.Sources {
		s := &p.Config.Sources[i]
		until, ends := lastUntil(s.Secrets)
		switch {
		case len(s.Secrets) == 0 || !ends || until.After(now.Add(soon)):
		case until.After(now):
			found = append(found, doubt("add the next secret to the source, and at the provider", "%s: its last secret is accepted until %s", s.Name, until.UTC().Format(time.RFC3339)))
		default:
			found = append(found, bad("add a secret that is valid now", "%s: its last secret was accepted until %s; its events are refused", s.Name, until.UTC().Format(time.RFC3339)))
		}
	}
	if len(found) == 0 && len(p.Config.Sources) > 0 {
		found = append(found, good("none ends within %s", days(soon)))
	}
	return found, nil
}

// lastUntil returns when the last secret ends, and whether all end.
func lastUntil(all []config.Secret) (last time.Time, ends bool) {
	for _, s := range all {
		if s.Until.IsZero() {
			return time.Time{}, false
		}
		if s.Until.After(last) {
			last = s.Until
		}
	}
	return last, true
}

// days writes a length of time in the largest unit that it fills.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return plural(int64(d/day), "day")
	}
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}
