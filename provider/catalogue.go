package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknown says that the catalogue has no provider of that name.
var ErrUnknown = errors.New("no such provider")

// catalogue returns the specifications of all providers, in the order of their names.
func catalogue() []Spec {
	return []Spec{
		githubSpec(),
		HMACConfig{}.Spec(),
		paddleSpec(),
		shopifySpec(),
		slackSpec(),
		squareSpec(),
		standardSpec(),
		stripeSpec(),
		svixSpec(),
	}
}

// Names returns the names of the providers in the catalogue, sorted.
func Names() []string {
	var names []string
	for _, s := range catalogue() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// Lookup returns the specification of a provider in the catalogue.
func Lookup(name string) (Spec, bool) {
	for _, s := range catalogue() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}

// Build returns the provider of that name in the catalogue, for one endpoint. An unknown name is an
// error that wraps [ErrUnknown] and suggests what was meant; for the others see [New].
func Build(name string, settings Settings) (*Provider, error) {
	spec, ok := Lookup(name)
	if !ok {
		return nil, unknown(name)
	}
	return New(spec, settings)
}

func unknown(name string) error {
	if meant := Suggest(name); meant != "" {
		return fmt.Errorf("%w: %q; did you mean %q?", ErrUnknown, name, meant)
	}
	return fmt.Errorf("%w: %q; known are %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// Suggest returns the name in the catalogue that was probably meant by name, empty if none is near.
func Suggest(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	best, least := "", 3
	for _, known := range Names() {
		if strings.HasPrefix(name, known) {
			return known
		}
		if d := distance(name, known); d < least && d < len(known)/2+1 {
			best, least = known, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
