package settings

import (
	"fmt"
	"slices"
)

// Change is one thing that two configurations differ in.
type Change struct {
	// Setting is the key, such as "delivery.timeout", without that of the list that it stands in.
	Setting string
	// Text says what changed, for people: "source billing: secrets changed (2 → 3)". No secret is in it.
	Text string
	// Restart is set if the change takes a new process.
	Restart bool
}

// Differ compares two values of the same settings by what holds, and not by where it is written. The
// origins tell what is not set.
func Differ[C any](before, after *C, t Table[C], was, is Layer) (all []Change) {
	for _, f := range t {
		a, b := f.Bind(before), f.Bind(after)
		if exactly(a) == exactly(b) {
			continue
		}
		all = append(all, Change{Setting: f.Key, Restart: f.Restart,
			Text: f.Key + " changed" + fromTo(a, b, f.Default != "" || was.Has(f.Key), f.Default != "" || is.Has(f.Key))})
	}
	return all
}

// fromTo says from what to what a value changed, as far as it may be shown, in brackets.
func fromTo(a, b Value, was, is bool) string {
	before, after := shownIf(was, a), shownIf(is, b)
	listed, _ := a.(List)
	switch {
	case listed != nil:
		return Counts(len(listed.Items()), len(b.(List).Items()))
	case before == after:
		return "" // it is masked, or what it refers to changed
	}
	return fmt.Sprintf(" (%s → %s)", before, after)
}

func shownIf(set bool, v Value) string {
	if !set {
		return "not set"
	}
	return v.Show()
}

// Counts says how many elements a list had and has, in brackets; nothing if it is the same.
func Counts(before, after int) string {
	if before == after {
		return ""
	}
	return fmt.Sprintf(" (%d → %d)", before, after)
}

// Match pairs the elements of two lists by name, and says which came, which went, and what the others
// differ in. what is one of them.
func Match[C any](what string, before, after []C, name func(*C) string, changes func(a, b *C) []Change) (all []Change) {
	find := func(in []C, n string) *C {
		if i := slices.IndexFunc(in, func(c C) bool { return name(&c) == n }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	for i := range before {
		n := name(&before[i])
		if now := find(after, n); now == nil {
			all = append(all, Change{Setting: "name", Text: fmt.Sprintf("%s %s removed", what, n)})
		} else {
			for _, c := range changes(&before[i], now) {
				c.Text = fmt.Sprintf("%s %s: %s", what, n, c.Text)
				all = append(all, c)
			}
		}
	}
	for i := range after {
		if n := name(&after[i]); find(before, n) == nil {
			all = append(all, Change{Setting: "name", Text: fmt.Sprintf("%s %s added", what, n)})
		}
	}
	return all
}
