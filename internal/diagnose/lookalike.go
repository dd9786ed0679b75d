package diagnose

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// maxLookalikes is how many other providers are tried.
const maxLookalikes = 12

// likeness says whether the signature of a certain sender is in a request's header, and counts what else there is of its.
func likeness(known spec.Spec, header http.Header) (signature bool, points int) {
	hidden := fetches(known) // what is code of the catalogue does not say where its signature is
	for i, name := range carriers(known) {
		switch {
		case name == "Authorization" || header.Get(name) == "":
		case i == 0 || isSignature(known, name):
			signature = true
		default:
			points++
		}
	}
	for _, name := range slices.Concat(known.Headers, eventHeaders(known)) {
		name = http.CanonicalHeaderKey(name)
		begin, many := strings.CutSuffix(name, "*")
		is := false
		for came := range header {
			if came == name || many && strings.HasPrefix(came, begin) {
				is = true
				signature = signature || hidden && strings.Contains(came, "Sig")
			}
		}
		if is {
			points++
		}
	}
	if agent := strings.ToLower(header.Get("User-Agent")); agent != "" && strings.HasPrefix(agent, known.Name) {
		points += 3
	}
	return signature, points
}

// isSignature reports whether a signature of the sender is in that header.
func isSignature(known spec.Spec, name string) bool {
	return slices.ContainsFunc(known.Verify, func(v spec.Verify) bool { return strings.EqualFold("header:"+name, string(v.Signature.In)) })
}

// eventHeaders returns the names of headers in which a sender says something of an event.
func eventHeaders(known spec.Spec) (names []string) {
	values := slices.Concat(known.Event.AttemptID, known.Event.Subscription, known.Event.Type, known.Event.Resource, known.Event.Tenant, slices.Concat(known.Event.Key...))
	for _, v := range values {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(string(v), "?"), "header:"); ok && !strings.HasPrefix(strings.ToLower(name), "idempotency") {
			names = append(names, name)
		}
	}
	return names
}

// lookalikes returns the names of other providers whose signature is in the request's header, and of which as much is there besides
// as of the one that is asked for; those first of which most is.
func (c Capture) lookalikes() []string {
	type like struct {
		name   string
		points int
	}
	var all []like
	_, own := likeness(c.Spec, c.Request.Header)
	for _, name := range provider.Names() {
		known, err := provider.Lookup(name)
		if err != nil || name == c.Spec.Name || name == "hmac" {
			continue
		}
		if signature, points := likeness(known, c.Request.Header); signature && points >= own {
			if (name == "standard" || name == "svix") && c.Request.Header.Get(carriers(known)[0]) != "" {
				points += 2 // before all those that send as these do
			}
			all = append(all, like{name, points})
		}
	}
	slices.SortStableFunc(all, func(a, b like) int { return cmp.Compare(b.points, a.points) })
	names := make([]string, 0, maxLookalikes)
	for _, l := range all[:min(len(all), maxLookalikes)] {
		names = append(names, l.name)
	}
	return names
}

// elsewhere says which provider a request is of.
func elsewhere(known spec.Spec, proven bool) note {
	title := known.WithDefaults().Title
	if !proven {
		return note{OtherProvider, "this looks like a request of " + title, "use --provider " + known.Name + ", and its secret: " + known.WithDefaults().Secret}
	}
	return note{OtherProvider, "this is a request of " + title, "use --provider " + known.Name}
}

// looksLikeAnother says which other provider a request without a signature of its own looks like.
func (c Capture) looksLikeAnother() (Cause, bool) {
	own, _ := likeness(c.Spec, c.Request.Header)
	names := c.lookalikes()
	if own || len(names) == 0 {
		return Cause{}, false
	}
	known, err := provider.Lookup(names[0])
	if err != nil {
		return Cause{}, false
	}
	n := elsewhere(known, false)
	return Cause{Word: n.word, Text: n.text + ", and not of " + c.Spec.Title, Mend: n.mend}, true
}
