package providertext

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// Listing is what is said of the list of events that a sender's API has.
type Listing struct {
	*spec.Reconcile
	Name string
}

// Listing returns what is said of the sender's list, nil if none is described.
func (s Sender) Listing() *Listing {
	if s.Reconcile == nil {
		return nil
	}
	return &Listing{s.Reconcile, s.Name}
}

// Request returns method and path, with the first place in it and without the query.
func (l *Listing) Request() string {
	path := string(l.List.Path)
	if len(l.Places) > 0 {
		path = strings.ReplaceAll(path, "{place}", string(l.Places[0].Path))
	}
	path, _, _ = strings.Cut(path, "?")
	return l.List.Method + " " + path
}

// At returns the servers and the places.
func (l *Listing) At() string {
	var servers, places []string
	for _, s := range l.Servers {
		servers = append(servers, "`"+string(s.URL)+"`")
	}
	text := strings.Join(servers, " or ")
	if l.SelfHosted {
		text += " or a server of your own"
	}
	for _, p := range l.Places {
		places = append(places, p.Name)
	}
	if len(places) > 0 {
		text += "; place: " + strings.Join(places, ", ")
	}
	return text
}

// Back returns how far back the list goes.
func (l *Listing) Back() string {
	if l.Window == 0 {
		return "not stated"
	}
	return spec.FormatDuration(l.Window)
}

// Again returns whether and how an event is sent again.
func (l *Listing) Again() string {
	r := l.Redeliver
	if r == nil {
		return "no API is documented"
	}
	text := "yes"
	if r.Rate != l.Rate {
		text += fmt.Sprintf(", %d in %s", r.Rate.Requests, spec.FormatDuration(r.Rate.Per))
	}
	if r.Rights != "" {
		text += "; needs " + r.Rights
	}
	return text
}

// Stored returns whether an event can be stored from the list.
func (l *Listing) Stored() string {
	switch e := l.List.Event; {
	case e == nil:
		return "no: only a report"
	case l.Detail != nil:
		return "yes, one request each"
	case e.Body == "":
		return "no: only a report"
	}
	return "yes"
}

// Event returns how a listed body differs from that of a webhook.
func (l *Listing) Event() string {
	recorded := l.List.Event
	if l.Detail != nil {
		recorded = &l.Detail.Event
	}
	tried := ""
	if l.List.Deliveries {
		tried = "it has deliveries, and nothing that was never tried; "
	}
	switch {
	case recorded == nil:
		return "it does not have the events"
	case recorded.Differs == "":
		return tried + "its events have the body of the webhook"
	}
	return tried + "its events have the body of the webhook, but " + recorded.Differs
}

// Token returns what the token is.
func (l *Listing) Token() string { return cmp.Or(l.Auth.Token, "an API key") }

// Settings returns what else has to be said.
func (l *Listing) Settings() string {
	var all []string
	for _, s := range l.Reconcile.Settings {
		text := "`" + s.Name + "`, " + s.Help
		if s.Optional {
			text += " (optional)"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
