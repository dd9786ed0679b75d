package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/provider"
)

// configChecks look at the configuration alone. That it makes sense is checked already.
func configChecks() []check[Patient] {
	return []check[Patient]{
		{"configuration", warnings},
		{"retention", retention},
		{"secrets", secrets},
		{"secret files", secretFiles},
	}
}

func warnings(_ context.Context, p Patient) (found []Finding, _ error) {
	for _, text := range p.Config.Warnings {
		found = append(found, doubt("change the setting, or leave it if it is meant so", "%s", text))
	}
	switch n := len(p.Config.Sources); {
	case n == 0 && len(found) == 0:
		from := "no sources in " + p.Config.File
		if p.Config.File == "" {
			from = "no sources, and no configuration file"
		}
		return one(good("%s: only the store %s is looked at", from, p.Config.Store))
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
			found = append(found, good("%s: keys and answers are kept for %s", s.Name, days(s.Idempotency.Remember)))
			continue
		}
		window, err := windowOf(s)
		ids := days(p.Config.RetentionOf(s).IDs)
		switch {
		case err != nil:
			return found, err
		case window == 0:
			found = append(found, good("%s: nothing is known about how long %s sends an event again; ids are kept for %s", s.Name, s.Provider, ids))
		default:
			found = append(found, good("%s: %s sends an event again for up to %s; ids are kept for %s", s.Name, s.Provider, days(window), ids))
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

// secrets finds sources of which no secret is accepted now, and secrets that end soon, with what replaces them.
func secrets(_ context.Context, p Patient) (found []Finding, _ error) {
	now := p.Now()
	for i := range p.Config.Sources {
		s := &p.Config.Sources[i]
		if len(s.Secrets) > 0 && len(acceptedAt(s.Secrets, now)) == 0 {
			found = append(found, bad("add a secret that is valid now", "%s: none of its secrets is accepted now; its events are refused", s.Name))
			continue
		}
		for _, n := range acceptedAt(s.Secrets, now) {
			if end := s.Secrets[n].Until; !end.IsZero() && !end.After(now.Add(soon)) {
				found = append(found, ending(s, n))
			}
		}
	}
	if len(found) == 0 && len(p.Config.Sources) > 0 {
		found = append(found, good("none ends within %s", days(soon)))
	}
	return found, nil
}

// secretFiles finds files with secrets and private keys that every user of the machine can read.
func secretFiles(_ context.Context, p Patient) (found []Finding, _ error) {
	if runtime.GOOS == "windows" {
		return nil, nil // where modes say nothing of that
	}
	told := map[string]bool{}
	for _, f := range p.Config.SecretFiles {
		info, err := os.Stat(f.Name)
		if err != nil || info.Mode().Perm()&0o007 == 0 || told[f.Name] {
			continue
		}
		told[f.Name] = true
		found = append(found, doubt("chmod o= "+f.Name, "%s (%s): every user of this machine can open %s (%v)", f.Key, f.At, f.Name, info.Mode().Perm()))
	}
	inline := slices.SortedStableFunc(slices.Values(p.Config.Inline), func(a, b config.Inline) int { return a.At.Line - b.At.Line })
	if info, err := os.Stat(p.Config.File); err == nil && len(inline) > 0 && info.Mode().Perm()&0o007 != 0 {
		var where []string
		for _, s := range inline {
			where = append(where, fmt.Sprintf("%s in line %d", s.Key, s.At.Line))
		}
		found = append(found, doubt("chmod o= "+p.Config.File+", or write env:NAME or file:PATH in their place", "every user of this machine can open %s (%v), and secrets stand in it: %s", p.Config.File, info.Mode().Perm(), strings.Join(where, ", ")))
	}
	if len(found) == 0 && len(p.Config.SecretFiles)+len(inline) > 0 {
		found = append(found, good("none is open to every user of this machine"))
	}
	return found, nil
}

// acceptedAt returns which of the secrets are accepted at a time.
func acceptedAt(all []settings.Secret, t time.Time) (numbers []int) {
	for n, s := range all {
		if !t.Before(s.From) && (s.Until.IsZero() || t.Before(s.Until)) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// ending judges a secret that ends soon by what is accepted from then on.
func ending(s *config.Source, n int) Finding {
	end := s.Secrets[n].Until
	text := fmt.Sprintf("%s: %s is accepted until %s", s.Name, named(s, n), moment(end))
	if next := acceptedAt(s.Secrets, end); len(next) > 0 {
		names := make([]string, len(next))
		for i, m := range next {
			names[i] = named(s, m)
			if from := s.Secrets[m].From; !from.IsZero() {
				names[i] += " from " + moment(from)
			}
		}
		return good("%s; %s replaces it", text, strings.Join(names, " and "))
	}
	const advice = "add the next secret to the source, and at the provider, before that"
	later := -1
	for m := range s.Secrets {
		if from := s.Secrets[m].From; from.After(end) && (later < 0 || from.Before(s.Secrets[later].From)) {
			later = m
		}
	}
	if later >= 0 {
		return bad("have the next one begin before that, so that both are accepted for a while", "%s, and %s only from %s: in between its events are refused", text, named(s, later), moment(s.Secrets[later].From))
	}
	return bad(advice, "%s, and nothing replaces it: from then on its events are refused", text)
}

// named is a secret as the configuration calls it, or its number if it stands there itself.
func named(s *config.Source, n int) string {
	if text := s.Secrets[n].String(); strings.Contains(text, ":") {
		return text
	}
	return fmt.Sprintf("secret %d", n+1)
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// days writes a length of time in the largest unit that it fills.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return plural(int64(d/day), "day")
	}
	text := d.String() // Go writes trailing zero units: 10h30m0s
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
