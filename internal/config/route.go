package config

import (
	"fmt"
	"strings"

	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// Route sends events of a source to destinations. Every route that an event matches applies.
type Route struct {
	// To are the names of the destinations.
	To []string
	// Types are patterns for the event's type, one of which it must match: text in which * stands for
	// any characters. None: all types.
	Types []string
	// Where are fields of the event, all of which must have the text that is given.
	Where []Match

	origin settings.Layer
	at     settings.Place
}

// Match is a field of an event and the text that it must have.
type Match struct {
	Field spec.Value
	Text  string
}

// routeTable declares every setting of a route.
var routeTable = settings.Table[Route]{
	{Key: "to", Bind: func(r *Route) settings.Value {
		return settings.Names(&r.To, "ledger", checkName)
	}},
	{Key: "types", Bind: func(r *Route) settings.Value {
		return settings.Names(&r.Types, "invoice.*", checkPattern)
	}},
	{Key: "where", Bind: func(r *Route) settings.Value { return matches{&r.Where} }},
}

// where returns the place that a setting of the route came from, or that of the route.
func (r *Route) where(key string) settings.Place {
	return r.origin.Where(r.at, key)
}

// matches is the setting "where".
type matches struct{ to *[]Match }

func (v matches) Clear()           { *v.to = nil }
func (v matches) Set(string) error { return nil } // a group has no text of its own
func (v matches) Show() string     { return strings.Join(v.Items(), " ") }
func (v matches) Example() string  { return `"json:$.livemode": "true"` }

func (v matches) Items() []string {
	items := make([]string, len(*v.to))
	for i, m := range *v.to {
		items[i] = settings.QuotePair(string(m.Field), m.Text)
	}
	return items
}

func (v matches) SetPair(field, text string) error {
	*v.to = append(*v.to, Match{spec.Value(field), text})
	if text == "" {
		return fmt.Errorf("%q has an empty text, which stands for a field that is not there; write the text that it must have", field)
	}
	return nil
}
