package spec

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Reconcile says how the sender's API is asked which events it made and, where it can be, to send one of them again: what
// `hookonce reconcile` goes by. Senders that deliver at least once also deliver never; this finds those events.
//
// What an event means is said once, in [Extract]: an entry of the list leads to the body and the headers that the webhook
// had, or would have had, and [Provider.Listed] takes key, type and the rest from there.
type Reconcile struct {
	// Servers lists the origins of the API, https and a host each. The first is asked, unless the setting "server" names
	// another, such as that of a sandbox. A setting may stand for the first label of a host ({site}.example.com), for no
	// other part of it. http is for loopback addresses only.
	Servers []Server `yaml:"servers,omitempty"`
	// SelfHosted is set if users of the sender run its software on servers of their own: the setting "server" may then be
	// an origin.
	SelfHosted bool `yaml:"self_hosted,omitempty"`
	// Places lists where webhooks are registered, if at different places: at a repository, at an organisation. The first
	// counts, unless the setting "place" names another. Its path stands for {place} in the other paths.
	Places []Place `yaml:"places,omitempty"`
	// Settings lists what the paths, bodies and headers need to know, by the names that stand in braces there. Settings of
	// places are listed with these; only those of the place that counts are asked for.
	Settings []Setting `yaml:"settings,omitempty"`
	// Auth says how the token is presented.
	Auth Auth `yaml:"auth"`
	// Header is sent along with every request, such as the version of the API. A header whose setting is not set is left
	// out.
	Header map[string]Pattern `yaml:"header,omitempty"`
	// List is the request for a page of the list, and its answer.
	List List `yaml:"list"`
	// Detail is the request for one entry, where the list does not have all of the event. It is made only for events that
	// are to be stored. Nil: the list has it.
	Detail *Detail `yaml:"detail,omitempty"`
	// Redeliver is the request that has one entry sent again. Nil: no API for that is documented.
	Redeliver *Redeliver `yaml:"redeliver,omitempty"`
	// Window is how far back the list goes. Zero: the sender does not say.
	Window time.Duration `yaml:"window,omitempty"`
	// Rate is how often the API may be asked. Default: twice a second.
	Rate Rate `yaml:"rate,omitempty"`
	// Rights says in words which right the token needs, and no more than that.
	Rights string `yaml:"rights,omitempty"`
	// Everything is set if the list has all events of the account, also those of types that the webhook is not subscribed
	// to. They never arrive, so whoever compares has to say which types do.
	Everything bool `yaml:"everything,omitempty"`
	// Notes says what people should know, for people.
	Notes []string `yaml:"notes,omitempty"`
}

// Server is an origin of the API.
type Server struct {
	// Name is what the setting "server" calls it.
	Name string `yaml:"name"`
	// URL is https, a host, and a path that all others are below, if there is one.
	URL Pattern `yaml:"url"`
}

// Place is where a webhook is registered.
type Place struct {
	// Name is what the setting "place" calls it.
	Name string `yaml:"name"`
	// Path stands for {place}.
	Path Pattern `yaml:"path"`
}

// Setting is what the operator says once.
type Setting struct {
	// Name is letters, digits and underscores, beginning with a letter; "server", "place", "since", "until" and "id" are
	// taken.
	Name string `yaml:"name"`
	// Help says in half a sentence what it is and where it is found.
	Help string `yaml:"help,omitempty"`
	// Optional is set if it can be left out: the header, or the part of the query, that has it is then left out.
	Optional bool `yaml:"optional,omitempty"`
	// List is set if it is several, with commas between them. The part of the query that has it is repeated for each.
	List bool `yaml:"list,omitempty"`
	// Allow lists characters besides letters, digits, dot, hyphen and underscore that it may have. They are escaped.
	Allow string `yaml:"allow,omitempty"`
}

// Pattern is a text in which {name} stands for a setting or for what the request is about: {since} and {until} in the unit
// of the list, {id} of the entry, {place}. What is put in is escaped as its place in a URL or in JSON demands.
type Pattern string

// Path is a place in a JSON document: $ for the whole, names joined by dots, [0] for an element of an array.
type Path string

// AuthKind says how the token is presented.
type AuthKind string

// The ways to present a token.
const (
	// AuthBearer is "Authorization: Bearer TOKEN".
	AuthBearer AuthKind = "bearer"
	// AuthBasic is HTTP basic authentication; the token is the user, or user:password.
	AuthBasic AuthKind = "basic"
	// AuthHeader is a header of its own, with the token as it is.
	AuthHeader AuthKind = "header"
	// AuthOAuth is an access token that is fetched with client credentials; the token is id:secret.
	AuthOAuth AuthKind = "oauth"
)

// Auth says how the token is presented.
type Auth struct {
	// Kind is the way. Default [AuthBearer].
	Kind AuthKind `yaml:"kind,omitempty"`
	// Header is the name of the header, for [AuthHeader].
	Header string `yaml:"header,omitempty"`
	// TokenPath is where access tokens are fetched, at the same server, for [AuthOAuth].
	TokenPath Pattern `yaml:"token_path,omitempty"`
	// Token says in half a sentence what the token is and where it is found.
	Token string `yaml:"token,omitempty"`
}

// Sort is the order of a list.
type Sort string

// The orders of lists.
const (
	Newest Sort = "newest"
	Oldest Sort = "oldest"
)

// List is the request for a page of the list, and where its answer has what. Paths lead through the answer; those of an
// entry through the entry.
type List struct {
	// Method is GET or POST. Default GET.
	Method string `yaml:"method,omitempty"`
	// Path is the path with its query, below the server.
	Path Pattern `yaml:"path"`
	// Body is the JSON body, for POST.
	Body Pattern `yaml:"body,omitempty"`
	// Unit is that of {since} and {until}. Default [RFC3339], in UTC.
	Unit Unit `yaml:"unit,omitempty"`
	// Items is where the entries are. Default $: the answer is an array.
	Items Path `yaml:"items,omitempty"`
	// LeftOut is set if the sender leaves the list out where it is empty. Of all others an answer without it is a fault, and
	// never taken for an empty list: nothing would be missing then.
	LeftOut bool `yaml:"left_out,omitempty"`
	// Page says how the next page is asked for. Nil: there is only one.
	Page *Page `yaml:"page,omitempty"`
	// Sort is the order. A list that has no {since} ends only where it is read from the newest to the oldest; without an
	// order all of it is read.
	Sort Sort `yaml:"sort,omitempty"`
	// ID is where an entry has its own id, which tells it from all others.
	ID Path `yaml:"id"`
	// Time is where an entry has its time, and Unit its form. Default: the event's own time ([Extract]).
	Time *ListedTime `yaml:"time,omitempty"`
	// Delivered says which entries the sender takes for delivered. Nil: it does not say.
	Delivered *Condition `yaml:"delivered,omitempty"`
	// Failures is set if the list has only what was not delivered.
	Failures bool `yaml:"failures,omitempty"`
	// Deliveries is set if the entries are deliveries and not events, so that several may be about one event. The newest
	// counts as the event, which is delivered if any of them was.
	Deliveries bool `yaml:"deliveries,omitempty"`
	// Event is where an entry has the event. Nil: it has none, so nothing can be compared, and the entries are reported as
	// what the sender says of them.
	Event *Recorded `yaml:"event,omitempty"`
}

// ListedTime is where an entry has its time.
type ListedTime struct {
	In   Path `yaml:"in"`
	Unit Unit `yaml:"unit,omitempty"`
}

// Condition holds if the text at a path is one of those listed. One that ends in a star stands for all that begin so.
type Condition struct {
	In Path     `yaml:"in"`
	Is []string `yaml:"is,flow"`
}

// Holds reports whether text meets the condition.
func (c *Condition) Holds(text string) bool {
	return slices.ContainsFunc(c.Is, func(want string) bool {
		begin, star := strings.CutSuffix(want, "*")
		return text == want || star && strings.HasPrefix(text, begin)
	})
}

// PageKind says how the next page is asked for.
type PageKind string

// The kinds of pages.
const (
	// PageCursor: a text in the answer is a parameter of the next request.
	PageCursor PageKind = "cursor"
	// PageLastID: the id of the last entry is.
	PageLastID PageKind = "last_id"
	// PageLink: the Link header (RFC 8288) has the URL of the next page.
	PageLink PageKind = "link"
	// PageURL: a text in the answer is the URL of the next page; or an array there, of objects with rel and href.
	PageURL PageKind = "url"
	// PageNumber: pages are counted from 1.
	PageNumber PageKind = "number"
	// PageOffset: the request says how many entries to leave out.
	PageOffset PageKind = "offset"
)

// Page says how the next page is asked for. A URL of the next page is followed only to the same origin.
type Page struct {
	Kind PageKind `yaml:"kind"`
	// In is where the cursor or the URL of the next page is. None there, or an empty one, is the end.
	In Path `yaml:"in,omitempty"`
	// Param is the parameter of the next request: of the query, or a member of the JSON body where there is one.
	Param string `yaml:"param,omitempty"`
	// Without lists parameters of the first request that cannot stand beside Param: the requests for the other pages leave them out.
	Without []string `yaml:"without,omitempty,flow"`
	// More is where the answer says whether there is another page: true or false. Default: it does not. True without a way to ask
	// for that page is an error, and not the end.
	More Path `yaml:"more,omitempty"`
	// Size is how many entries a full page has, for [PageNumber] and [PageOffset]: a shorter one is the last, where More does not say.
	Size int `yaml:"size,omitempty"`
}

// Recorded is where the request is that brought the event, or would have.
type Recorded struct {
	// Body is where its body is: the text of a string, or else the JSON that stands there. $ is the entry itself.
	Body Path `yaml:"body,omitempty"`
	// Headers is where an object with its headers is.
	Headers Path `yaml:"headers,omitempty"`
	// Header says where single headers are, by their names.
	Header map[string]Path `yaml:"header,omitempty"`
	// Cut marks an entry whose body was not recorded: it is compared, and never stored.
	Cut *Condition `yaml:"cut,omitempty"`
	// Differs says in words how the body differs from the one that webhooks have. Empty: not at all.
	Differs string `yaml:"differs,omitempty"`
}

// Detail is the request for one entry.
type Detail struct {
	// Path is the path with its query, below the server.
	Path Pattern `yaml:"path"`
	// Event is where the answer has the event.
	Event Recorded `yaml:"event"`
}

// Redeliver is the request that has one entry sent again.
type Redeliver struct {
	// Method is POST or PUT. Default POST.
	Method string `yaml:"method,omitempty"`
	// Path is the path with its query, below the server.
	Path Pattern `yaml:"path"`
	// Body is the JSON body. Default: none.
	Body Pattern `yaml:"body,omitempty"`
	// ID is where an entry has what stands for {id}. Default: the id of the list.
	ID Path `yaml:"id,omitempty"`
	// When says which entries can be sent again. Nil: all.
	When *Condition `yaml:"when,omitempty"`
	// Success lists the statuses of success. Default: 200 to 299.
	Success []int `yaml:"success,omitempty,flow"`
	// Rate is how often that may be asked. Default: the rate of the API.
	Rate Rate `yaml:"rate,omitempty"`
	// Rights says in words which right the token needs besides.
	Rights string `yaml:"rights,omitempty"`
}

// Rate is so many requests in a time.
type Rate struct {
	Requests int           `yaml:"requests,omitempty"`
	Per      time.Duration `yaml:"per,omitempty"`
}

// Every returns the time between two requests, zero if there is no rate.
func (r Rate) Every() time.Duration {
	if r.Requests <= 0 {
		return 0
	}
	return r.Per / time.Duration(r.Requests)
}

// withDefaults returns a copy with what is left out filled in.
func (r Reconcile) withDefaults() *Reconcile {
	r.Auth.Kind = cmp.Or(r.Auth.Kind, AuthBearer)
	r.List.Method = cmp.Or(r.List.Method, http.MethodGet)
	r.List.Unit = cmp.Or(r.List.Unit, RFC3339)
	r.List.Items = cmp.Or(r.List.Items, "$")
	if r.List.Time != nil {
		at := *r.List.Time
		at.Unit = cmp.Or(at.Unit, RFC3339)
		r.List.Time = &at
	}
	if r.Rate == (Rate{}) {
		r.Rate = Rate{Requests: 2, Per: time.Second}
	}
	if r.Redeliver != nil {
		again := *r.Redeliver
		again.Method = cmp.Or(again.Method, http.MethodPost)
		again.ID = cmp.Or(again.ID, r.List.ID)
		if again.Rate == (Rate{}) {
			again.Rate = r.Rate
		}
		r.Redeliver = &again
	}
	return &r
}
