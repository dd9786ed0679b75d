package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// placeholder is what a pattern replaces. JSON's own braces are never that: they have a quote or nothing behind them.
var placeholder = regexp.MustCompile(`\{[A-Za-z][A-Za-z0-9_]*\}`)

// Names returns the names in the braces of a pattern.
func (p Pattern) Names() []string {
	var names []string
	for _, found := range placeholder.FindAllString(string(p), -1) {
		names = append(names, found[1:len(found)-1])
	}
	return names
}

// Fill replaces each name in braces by its value, as escape writes it.
func (p Pattern) Fill(values map[string]string, escape func(string) string) string {
	return placeholder.ReplaceAllStringFunc(string(p), func(found string) string { return escape(values[found[1:len(found)-1]]) })
}

// Check returns what is wrong with the form of the path, nil if nothing is.
func (p Path) Check() error {
	_, err := p.Steps()
	return err
}

// Steps returns the steps of the path: names of members, and numbers in brackets. That of the whole document has none.
func (p Path) Steps() ([]string, error) {
	steps, err := parsePath(string(p), Value(p))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no path; write $ for the whole, or names joined by dots, as in $.data.id or $.items[0]", p)
	case slices.Contains(steps, "[*]"):
		return nil, fmt.Errorf("%q: [*] is for split.items only; the entries of a list are found without it, as in $.data", p)
	}
	return steps, nil
}

// The names in braces that are no settings.
const (
	namePlace = "place"
	nameSince = "since"
	nameUntil = "until"
	nameID    = "id"
)

// reserved are names that settings cannot have.
var reserved = []string{"server", namePlace, nameSince, nameUntil, nameID}

// maxSetting is how long the value of a setting may be, in bytes.
const maxSetting = 256

// maxListSetting is how long the value of one that is a list may be.
const maxListSetting = 4096

// CheckSettings returns what is wrong with the settings of a source: one that is missing, that this sender does not know,
// or that has characters it cannot have. The settings "server" and "place" choose among those that the specification
// lists.
func (r *Reconcile) CheckSettings(with map[string]string) error {
	server, err := r.server(with["server"])
	if err != nil {
		return err
	}
	place, err := r.place(with[namePlace])
	if err != nil {
		return err
	}
	used := r.used(server, place)
	for _, s := range r.Settings {
		if !slices.Contains(used, s.Name) {
			continue
		}
		if err := s.check(with[s.Name], slices.Contains(server.URL.Names(), s.Name)); err != nil {
			return err
		}
	}
	for _, name := range sortedNames(with) {
		if name != "server" && name != namePlace && !slices.Contains(used, name) {
			return fmt.Errorf("%s: there is no such setting here; there are %s", name, orNone(used))
		}
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// check holds a value to its setting. A label of a host has letters, digits and hyphens.
func (s Setting) check(value string, label bool) error {
	most := maxSetting
	if s.List {
		most = maxListSetting
	}
	switch {
	case value == "" && s.Optional:
		return nil
	case value == "":
		return fmt.Errorf("%s: is missing; it is %s", s.Name, s.Help)
	case len(value) > most:
		return fmt.Errorf("%s: has %d bytes; at most %d are taken", s.Name, len(value), most)
	case value == "." || value == "..":
		return fmt.Errorf("%s: %q is no name, and would lead to another path", s.Name, value)
	case label && !hostLabel.MatchString(value):
		return fmt.Errorf("%s: %q is no label of a host; it has letters, digits and hyphens alone", s.Name, value)
	}
	for _, c := range value {
		if !settingLetter(c) && !strings.ContainsRune(s.Allow, c) && !(s.List && c == ',') {
			return fmt.Errorf("%s: %q is not taken here; it has letters, digits, dots, hyphens and underscores%s", s.Name, c, s.allowed())
		}
	}
	return nil
}

func (s Setting) allowed() string {
	if s.Allow == "" {
		return ""
	}
	return ", and " + s.Allow
}

func settingLetter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
}

var (
	settingName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,31}$`)
	hostLabel   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	fixedHost   = regexp.MustCompile(`^(\{[A-Za-z][A-Za-z0-9_]*\}\.)?([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+$`)
)

// server returns the server of that name, the first if there is none, or one that users of the sender run.
func (r *Reconcile) server(name string) (Server, error) {
	if name == "" {
		return r.Servers[0], nil
	}
	var names []string
	for _, s := range r.Servers {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	known := strings.Join(names, ", ")
	if !r.SelfHosted {
		return Server{}, fmt.Errorf("server: there is no %q; there are %s", name, known)
	}
	err := checkOrigin(Pattern(name))
	if strings.ContainsAny(name, "{}") {
		err = fmt.Errorf("is no URL; write https:// and a host")
	}
	if err != nil {
		return Server{}, fmt.Errorf("server: %q %w; or write one of %s", name, err, known)
	}
	return Server{Name: name, URL: Pattern(strings.TrimSuffix(name, "/"))}, nil
}

// place returns the place of that name, the first if there is none.
func (r *Reconcile) place(name string) (Place, error) {
	if len(r.Places) == 0 && name == "" {
		return Place{}, nil
	}
	var names []string
	for _, p := range r.Places {
		if name == "" || p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Place{}, fmt.Errorf("place: there is no %q; there are %s", name, orNone(names))
}

// used returns the names of the settings that are needed with that server and that place.
func (r *Reconcile) used(server Server, place Place) []string {
	patterns := []Pattern{server.URL, place.Path, r.List.Path, r.List.Body, r.Auth.TokenPath}
	for _, name := range sortedNames(r.Header) {
		patterns = append(patterns, r.Header[name])
	}
	if r.Detail != nil {
		patterns = append(patterns, r.Detail.Path)
	}
	if r.Redeliver != nil {
		patterns = append(patterns, r.Redeliver.Path, r.Redeliver.Body)
	}
	var used []string
	for _, s := range r.Settings {
		if slices.ContainsFunc(patterns, func(p Pattern) bool { return slices.Contains(p.Names(), s.Name) }) {
			used = append(used, s.Name)
		}
	}
	return used
}

// Base returns the URL that the paths are below and what stands for {place}, for settings that [Reconcile.CheckSettings]
// found to be right.
func (r *Reconcile) Base(with map[string]string) (base string, place Pattern, err error) {
	if err := r.CheckSettings(with); err != nil {
		return "", "", err
	}
	server, _ := r.server(with["server"])
	at, _ := r.place(with[namePlace])
	return strings.TrimSuffix(server.URL.Fill(with, strings.ToLower), "/"), at.Path, nil
}

// checkOrigin holds the address of an API to what a token may be sent to.
func checkOrigin(address Pattern) error {
	u, err := url.Parse(address.Fill(nil, func(string) string { return "x" }))
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("is no URL; write https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(string(address), "?#"):
		return fmt.Errorf("has more than a host and a path; the token and settings are given elsewhere")
	case u.Scheme == "http" && header.LoopbackHost(u.Host):
		return nil
	case u.Scheme != "https":
		return fmt.Errorf("is not https; a token is sent over nothing else, except to this machine (http://127.0.0.1)")
	}
	return nil
}

// checkReconcile refuses a description that could send a token elsewhere, would never end, or finds no keys.
func checkReconcile(s Spec, all *Faults) {
	r := s.Reconcile
	if r == nil {
		return
	}
	found := Faults{}
	r.checkServers(&found)
	r.checkSettings(&found)
	r.checkAuth(&found)
	r.checkList(&found)
	r.checkRedeliver(&found)
	found.add(within("list.event", s.checkListedKey()))
	if s.Dedup.OnRepeat != Drop {
		found.add(fault("", "one key is more than one event (on_repeat: %s), or the content is a part of it: nothing can be compared; remove reconcile", s.Dedup.OnRepeat))
	}
	for _, one := range found {
		all.add(within("reconcile", one))
	}
}

func (r *Reconcile) checkServers(all *Faults) {
	if len(r.Servers) == 0 {
		all.add(fault("servers", "is missing: say where the API is, as in [{name: live, url: https://api.example.com}]"))
	}
	for i, server := range r.Servers {
		all.add(within(fmt.Sprintf("servers[%d]", i), server.check()))
	}
	for i, place := range r.Places {
		field := fmt.Sprintf("places[%d]", i)
		if !settingName.MatchString(place.Name) {
			all.add(fault(field+".name", "%q is no name; it has letters, digits and underscores", place.Name))
		}
		all.add(within(field+".path", r.checkPath(place.Path)))
	}
}

func (s Server) check() error {
	if !settingName.MatchString(s.Name) {
		return fault("name", "%q is no name; it has letters, digits and underscores", s.Name)
	}
	if err := checkOrigin(s.URL); err != nil {
		return fault("url", "%q %v", s.URL, err)
	}
	_, rest, _ := strings.Cut(string(s.URL), "://")
	host, path, _ := strings.Cut(rest, "/")
	if len(s.URL.Names()) > 0 && (!fixedHost.MatchString(host) || strings.Contains(path, "{")) {
		return fault("url", "%q: a setting is the first label of a host alone, with at least two behind it, as in https://{site}.example.com: else it could be another's host", s.URL)
	}
	return nil
}

func (r *Reconcile) checkSettings(all *Faults) {
	used := map[string]bool{}
	note := func(field string, p Pattern, special ...string) {
		for _, name := range p.Names() {
			known := slices.Contains(special, name) || slices.ContainsFunc(r.Settings, func(s Setting) bool { return s.Name == name })
			if !known {
				all.add(fault(field, "{%s} is neither a setting nor known here; list it in settings", name))
			}
			used[name] = true
		}
	}
	for i, s := range r.Servers {
		note(fmt.Sprintf("servers[%d].url", i), s.URL)
	}
	for i, p := range r.Places {
		note(fmt.Sprintf("places[%d].path", i), p.Path)
	}
	for _, name := range sortedNames(r.Header) {
		note("header."+name, r.Header[name])
	}
	note("auth.token_path", r.Auth.TokenPath)
	note("list.path", r.List.Path, namePlace, nameSince, nameUntil)
	note("list.body", r.List.Body, namePlace, nameSince, nameUntil)
	if r.Detail != nil {
		note("detail.path", r.Detail.Path, namePlace, nameID)
	}
	if r.Redeliver != nil {
		note("redeliver.path", r.Redeliver.Path, namePlace, nameID)
		note("redeliver.body", r.Redeliver.Body, nameID)
	}
	if used[namePlace] != (len(r.Places) > 0) {
		all.add(fault("places", "{place} stands for one of the places: use both, or neither"))
	}
	for i, s := range r.Settings {
		field := fmt.Sprintf("settings[%d].name", i)
		switch {
		case !settingName.MatchString(s.Name) || slices.Contains(reserved, s.Name):
			all.add(fault(field, "%q cannot be the name of a setting; it has letters, digits and underscores, and is none of %s", s.Name, strings.Join(reserved, ", ")))
		case slices.ContainsFunc(r.Settings[:i], func(other Setting) bool { return other.Name == s.Name }):
			all.add(fault(field, "%q is there twice; keep one of them", s.Name))
		case !used[s.Name]:
			all.add(fault(field, "{%s} stands nowhere; remove it, or use it", s.Name))
		}
	}
}

func (r *Reconcile) checkAuth(all *Faults) {
	a := r.Auth
	switch {
	case !slices.Contains([]AuthKind{AuthBearer, AuthBasic, AuthHeader, AuthOAuth}, a.Kind):
		all.add(fault("auth.kind", "there is no %q; use bearer, basic, header or oauth", a.Kind))
	case (a.Kind == AuthHeader) != (a.Header != ""):
		all.add(fault("auth.header", "names the header of kind: header, and of no other"))
	case a.Header != "" && !header.ValidName(a.Header):
		all.add(fault("auth.header", "%q is not a header name", a.Header))
	case (a.Kind == AuthOAuth) != (a.TokenPath != ""):
		all.add(fault("auth.token_path", "says where kind: oauth fetches access tokens, and no other kind does"))
	case a.TokenPath != "":
		all.add(within("auth.token_path", r.checkPath(a.TokenPath)))
	}
	for _, name := range sortedNames(r.Header) {
		field, value := "header."+name, r.Header[name]
		switch canonical := textproto.CanonicalMIMEHeaderKey(name); {
		case !header.ValidName(name) || !header.ValidValue(string(value)):
			all.add(fault(field, "is not a header"))
		case canonical == "Authorization" || canonical == "Host" || canonical == "Content-Length" || header.HopByHop(canonical):
			all.add(fault(field, "is set by other means; the token is described by auth"))
		}
	}
	if r.Window < 0 {
		all.add(fault("window", "is negative"))
	}
	all.add(within("rate", r.Rate.check()))
}

func (r Rate) check() error {
	if r.Requests < 0 || r.Per < 0 || (r.Requests == 0) != (r.Per == 0) {
		return fmt.Errorf("is so many requests in a time, both of them, as in {requests: 5, per: 1m}")
	}
	return nil
}

// checkPath holds a path below the server to one that cannot leave it.
func (r *Reconcile) checkPath(p Pattern) error {
	text := string(p)
	rooted := strings.HasPrefix(text, "/") || strings.HasPrefix(text, "{place}/") && len(r.Places) > 0
	path, _, _ := strings.Cut(text, "?")
	switch {
	case !rooted:
		return fmt.Errorf("%q is no path below the server; it begins with a slash", p)
	case strings.Contains(path, "//") || strings.Contains(path, "/.") || strings.ContainsAny(text, "#\\ \r\n\t"):
		return fmt.Errorf("%q would lead elsewhere or is no path; write it plainly", p)
	}
	_, err := url.Parse("https://host" + p.Fill(nil, func(string) string { return "/x" }))
	return err
}

// checkBody holds a body to JSON, whatever is put in.
func checkBody(p Pattern) error {
	if p != "" && !json.Valid([]byte(p.Fill(nil, func(string) string { return "1" }))) {
		return fmt.Errorf("is not JSON; names in braces stand inside of quotes")
	}
	return nil
}

func (r *Reconcile) checkList(all *Faults) {
	l := r.List
	switch {
	case l.Method != http.MethodGet && l.Method != http.MethodPost:
		all.add(fault("list.method", "is %s; a list is asked for with GET or POST", l.Method))
	case (l.Method == http.MethodPost) != (l.Body != ""):
		all.add(fault("list.body", "belongs to POST, and POST needs one"))
	}
	all.add(within("list.path", r.checkPath(l.Path)))
	all.add(within("list.body", checkBody(l.Body)))
	all.add(within("list.items", l.Items.Check()))
	all.add(within("list.id", l.ID.Check()))
	if !l.Unit.valid() {
		all.add(fault("list.unit", "there is no %q; use s, ms or rfc3339", l.Unit))
	}
	if l.Sort != "" && l.Sort != Newest && l.Sort != Oldest {
		all.add(fault("list.sort", "there is no %q; use newest or oldest, or leave it out", l.Sort))
	}
	if l.Time != nil {
		all.add(within("list.time.in", l.Time.In.Check()))
		if !l.Time.Unit.valid() {
			all.add(fault("list.time.unit", "there is no %q; use s, ms or rfc3339", l.Time.Unit))
		}
	}
	all.add(within("list.delivered", l.Delivered.check()))
	if l.Failures && l.Delivered != nil {
		all.add(fault("list.failures", "says that nothing listed was delivered, and delivered tells which of it was; remove one of them"))
	}
	if l.Page != nil {
		all.add(within("list.page", l.Page.check(l.Body != "")))
		first := l.params()
		for i, name := range l.Page.Without {
			if !slices.Contains(first, name) {
				all.add(fault(fmt.Sprintf("list.page.without[%d]", i), "%q is no parameter of the first page; name one that stands in the query, or a member of the body", name))
			}
		}
	}
	switch {
	case l.Event != nil:
		all.add(within("list.event", l.Event.check()))
	case !l.Failures && l.Delivered == nil:
		all.add(fault("list.event", "is missing: say where an entry has the event; a list without events says at least which of them were not delivered (delivered or failures)"))
	case r.Detail != nil:
		all.add(fault("detail", "has the event's body, and the list has no event to begin with; add list.event"))
	}
	if r.Detail != nil {
		all.add(within("detail.path", r.checkPath(r.Detail.Path)))
		all.add(within("detail.event", r.Detail.Event.check()))
		if r.Detail.Event.Body == "" {
			all.add(fault("detail.event.body", "is missing: a detail is asked for the event's body"))
		}
	}
}

// params are the names of the parameters of the first page.
func (l *List) params() (names []string) {
	if l.Body != "" {
		var members map[string]any
		_ = json.Unmarshal([]byte(l.Body.Fill(nil, func(string) string { return "1" })), &members) // checkBody refuses it
		return sortedNames(members)
	}
	_, query, _ := strings.Cut(string(l.Path), "?")
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		names = append(names, name)
	}
	return names
}

func (c *Condition) check() error {
	if c == nil {
		return nil
	}
	if err := c.In.Check(); err != nil {
		return within("in", err)
	}
	if len(c.Is) == 0 || slices.Contains(c.Is, "") {
		return fault("is", "is missing: list the texts that meet the condition, as in [delivered]")
	}
	return nil
}

// check holds a page to what its kind needs, and to nothing else.
func (p *Page) check(body bool) error {
	needs, ok := map[PageKind]struct{ in, param, size bool }{
		PageCursor: {in: true, param: true},
		PageLastID: {param: true},
		PageLink:   {},
		PageURL:    {in: true},
		PageNumber: {param: true, size: true},
		PageOffset: {param: true, size: true},
	}[p.Kind]
	switch {
	case !ok:
		return fault("kind", "there is no %q; use cursor, last_id, link, url, number or offset", p.Kind)
	case needs.in != (p.In != ""):
		return fault("in", "says where the answer has the cursor or the URL (kind: cursor, kind: url), and only that")
	case needs.param != (p.Param != ""):
		return fault("param", "names the parameter of the next request (kind: cursor, last_id, number, offset), and only there")
	case needs.size != (p.Size > 0):
		return fault("size", "says how many entries a full page has (kind: number, offset), and only there")
	case !needs.param && len(p.Without) > 0:
		return fault("without", "names what cannot stand beside param, and only there")
	case body && (p.Kind == PageLink || p.Kind == PageURL):
		return fault("kind", "a URL of the next page cannot carry the body of POST; use cursor")
	}
	if p.In != "" {
		if err := p.In.Check(); err != nil {
			return within("in", err)
		}
	}
	if p.More != "" {
		return within("more", p.More.Check())
	}
	return nil
}

func (rec *Recorded) check() error {
	if rec.Body == "" && rec.Headers == "" && len(rec.Header) == 0 {
		return fault("body", "is missing: say where the body or the headers of the webhook are")
	}
	if rec.Body != "" {
		if err := rec.Body.Check(); err != nil {
			return within("body", err)
		}
	}
	if rec.Headers != "" {
		if err := rec.Headers.Check(); err != nil {
			return within("headers", err)
		}
	}
	for _, name := range sortedNames(rec.Header) {
		path := rec.Header[name]
		if !header.ValidName(name) {
			return fault("header."+name, "is not a header name")
		}
		if err := path.Check(); err != nil {
			return within("header."+name, err)
		}
	}
	return within("cut", rec.Cut.check())
}

func (r *Reconcile) checkRedeliver(all *Faults) {
	again := r.Redeliver
	if again == nil {
		return
	}
	if again.Method != http.MethodPost && again.Method != http.MethodPut {
		all.add(fault("redeliver.method", "is %s; an entry is sent again with POST or PUT", again.Method))
	}
	all.add(within("redeliver.path", r.checkPath(again.Path)))
	all.add(within("redeliver.body", checkBody(again.Body)))
	if again.ID != r.List.ID {
		all.add(within("redeliver.id", again.ID.Check()))
	}
	all.add(within("redeliver.when", again.When.check()))
	all.add(within("redeliver.rate", again.Rate.check()))
	if !slices.Contains(slices.Concat(again.Path.Names(), again.Body.Names()), nameID) {
		all.add(fault("redeliver.path", "does not say which entry: {id} has to stand in it, or in the body"))
	}
	for _, status := range again.Success {
		if status < 200 || status > 299 {
			all.add(fault("redeliver.success", "%d is no success; those are 200 to 299", status))
		}
	}
}

// checkListedKey refuses a list that no key can be taken from.
func (s Spec) checkListedKey() error {
	event := s.Reconcile.List.Event
	if event == nil {
		return nil
	}
	if len(s.Event.Key) == 0 {
		return fmt.Errorf("nothing can be compared without a key; add event.key, or leave reconcile out")
	}
	hashed := func(text Value) bool { part, err := parseValue(text); return err == nil && part.hashed }
	if s.Dedup.OnRepeat == KeepLatest || slices.ContainsFunc(s.Event.Key, func(rule []Value) bool { return slices.ContainsFunc(rule, hashed) }) {
		return fmt.Errorf("leads to other keys: a list may write the content otherwise than it was sent, and everything would be " +
			"missing; have an event.key without hash:, and no on_repeat: keep_latest, or leave reconcile out")
	}
	obtainable := func(text Value) bool {
		part, err := parseValue(text)
		if err != nil || part.optional {
			return true // New reports what cannot be parsed
		}
		if part.kind == kindID {
			part, _ = parseValue(s.Verify[0].ID)
		}
		switch part.kind {
		case kindConst:
			return true
		case kindHeader:
			return event.Headers != "" || slices.ContainsFunc(sortedNames(event.Header), func(name string) bool { return textproto.CanonicalMIMEHeaderKey(name) == part.text })
		case kindJSON, kindItem, kindParent, kindForm:
			return event.Body != ""
		}
		return false
	}
	for _, rule := range s.Event.Key {
		if !slices.ContainsFunc(rule, func(v Value) bool { return !obtainable(v) }) {
			return nil
		}
	}
	return fmt.Errorf("leads to no key: say where the list has what event.key takes, the body or the header")
}

// sortedNames returns the keys of a map, so that what is found in it is told in the same order each time.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
