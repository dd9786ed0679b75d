// Package reconciletest has a sender's API for tests: a list of events in pages of every kind, which shifts, lies and limits as
// a test wants it, and takes requests to send an event again.
package reconciletest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// Origin is where the API is said to be. No request reaches it: see [Server.RoundTrip].
const Origin = "https://api.acme.example"

// Token is what the API takes. It is no secret of anybody's.
const Token = "fake-token-of-the-api"

// Secret is the one that the sender of the specification signs with.
const Secret = "fake-secret-of-acme"

// Entry is one entry of the list.
type Entry struct {
	// ID is the entry's, and Key the event's. Default of Key: the ID.
	ID, Key string
	// Type of the event. Default "order.paid".
	Type string
	// At is when it was made.
	At time.Time
	// Delivered says whether it was.
	Delivered bool
}

// Server is a sender's API. Set its fields before it is asked.
type Server struct {
	// Kind is how pages are turned. Empty: there is one page.
	Kind spec.PageKind
	// Size is how many entries a page has. Default 10.
	Size int
	// Sort is the order of the list. Default [spec.Newest].
	Sort spec.Sort
	// Unfiltered is set if the list does not take a range of times.
	Unfiltered bool
	// Timeless is set if entries do not say their times.
	Timeless bool
	// Unstable is set if entries of the same time are in another order at each request.
	Unstable bool
	// Post is set if the list is asked for with POST and a JSON body.
	Post bool
	// Before is called before a page is made, with its number among all requests for pages, from 1. It may change the entries
	// with [Server.Add] and [Server.Remove].
	Before func(n int)
	// Clock is what answers say in Date. Nil: they do not.
	Clock func() time.Time
	// Resend is called when the server is asked to send an entry again, with the entry and how often it was asked for any. It may
	// change the entries with [Server.Add].
	Resend func(e Entry, n int)
	// Intercept may answer any request itself. It reports whether it did.
	Intercept func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	entries  []Entry
	requests []Request
	pages    int
	resent   []string
}

// Request is one that the server was asked.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        string
	At          time.Time
}

// Add adds entries.
func (s *Server) Add(entries ...Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, entries...)
}

// Remove removes the entries with those ids.
func (s *Server) Remove(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = slices.DeleteFunc(s.entries, func(e Entry) bool { return slices.Contains(ids, e.ID) })
}

// Requests returns what the server was asked.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Resent returns the ids that it was asked to send again, in order.
func (s *Server) Resent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.resent)
}

// RoundTrip answers a request without a network, so that it works in a bubble of testing/synctest.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	s.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := new(strings.Builder)
	if r.Body != nil {
		buf := make([]byte, 4096)
		for {
			n, err := r.Body.Read(buf)
			body.Write(buf[:n])
			if err != nil {
				break
			}
		}
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{Method: r.Method, URL: r.URL.String(), Header: r.Header.Clone(), Body: body.String(), At: time.Now()})
	s.mu.Unlock()
	if s.Clock != nil {
		w.Header().Set("Date", s.Clock().UTC().Format(http.TimeFormat))
	}
	switch id, isResend := strings.CutSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/events/"), "/resend"); {
	case s.Intercept != nil && s.Intercept(w, r):
	case r.Header.Get("Authorization") != "Bearer "+Token:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/events":
		s.list(w, r, body.String())
	case isResend && r.Method == http.MethodPost:
		s.resend(w, id)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *Server) resend(w http.ResponseWriter, escaped string) {
	id, err := url.PathUnescape(escaped)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.resent = append(s.resent, id)
	n := len(s.resent)
	i := slices.IndexFunc(s.entries, func(e Entry) bool { return e.ID == id })
	var e Entry
	if i >= 0 {
		e = s.entries[i]
	}
	s.mu.Unlock()
	if s.Resend != nil {
		s.Resend(e, n)
	}
	w.WriteHeader(http.StatusAccepted)
}

// list answers a request for a page.
func (s *Server) list(w http.ResponseWriter, r *http.Request, body string) {
	s.mu.Lock()
	s.pages++
	n := s.pages
	s.mu.Unlock()
	if s.Before != nil {
		s.Before(n)
	}
	params := r.URL.Query()
	if s.Post {
		members := map[string]any{}
		if err := json.Unmarshal([]byte(body), &members); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for name, value := range members {
			params.Set(name, fmt.Sprint(value))
		}
	}
	all := s.sorted(params, n)
	from := s.position(all, params)
	if from < 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	from = min(from, len(all))
	to := len(all)
	if s.Kind != "" {
		to = min(from+s.size(), len(all))
	}
	page := map[string]any{"data": render(all[from:to], s.Timeless), "more": to < len(all)}
	if to < len(all) {
		s.turn(w, r, page, all, to)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page) // the client is gone otherwise
}

func (s *Server) size() int {
	if s.Size == 0 {
		return 10
	}
	return s.Size
}

// sorted returns the entries in the range, in order.
func (s *Server) sorted(params url.Values, n int) []Entry {
	s.mu.Lock()
	all := slices.Clone(s.entries)
	s.mu.Unlock()
	if since, err := time.Parse(time.RFC3339, params.Get("since")); err == nil {
		all = slices.DeleteFunc(all, func(e Entry) bool { return e.At.Before(since) })
	}
	if until, err := time.Parse(time.RFC3339, params.Get("until")); err == nil {
		all = slices.DeleteFunc(all, func(e Entry) bool { return e.At.After(until) })
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		if order := a.At.Compare(b.At); order != 0 {
			return order
		}
		if s.Unstable {
			return strings.Compare(scramble(n, a.ID), scramble(n, b.ID))
		}
		return strings.Compare(a.ID, b.ID)
	})
	if s.Sort != spec.Oldest {
		slices.Reverse(all)
	}
	return all
}

// scramble makes an order that is another at each request.
func scramble(n int, id string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%d %s", n, id)))
}

// position returns where a page begins, negative if the request cannot be understood.
func (s *Server) position(all []Entry, params url.Values) int {
	after := params.Get("after")
	switch s.Kind {
	case spec.PageNumber:
		page := 1
		if text := params.Get("page"); text != "" {
			page, _ = strconv.Atoi(text)
		}
		return (page - 1) * s.size()
	case spec.PageOffset:
		offset, _ := strconv.Atoi(params.Get("offset"))
		return offset
	case "":
		return 0
	}
	if after == "" {
		return 0
	}
	return 1 + slices.IndexFunc(all, func(e Entry) bool { return e.ID == after })
}

// turn says how the next page is asked for.
func (s *Server) turn(w http.ResponseWriter, r *http.Request, page map[string]any, all []Entry, to int) {
	last := all[to-1].ID
	next := *r.URL
	query := next.Query()
	query.Set("after", last)
	next.RawQuery = query.Encode()
	switch s.Kind {
	case spec.PageCursor:
		page["next"] = last
	case spec.PageURL:
		page["next"] = next.String()
	case spec.PageLink:
		w.Header().Add("Link", `<`+Origin+`/first>; rel="first", <`+next.String()+`>; title="a, b"; rel="next"`)
	}
}

// render writes entries as they stand in the list.
func render(entries []Entry, timeless bool) []any {
	out := []any{}
	for _, e := range entries {
		entry := map[string]any{"id": e.ID, "ok": e.Delivered, "event": e.Body()}
		if !timeless {
			entry["at"] = e.At.UTC().Format(time.RFC3339)
		}
		out = append(out, entry)
	}
	return out
}

// Body returns the body of the entry's webhook.
func (e Entry) Body() json.RawMessage {
	key, kind := e.Key, e.Type
	if key == "" {
		key = e.ID
	}
	if kind == "" {
		kind = "order.paid"
	}
	body, _ := json.Marshal(map[string]any{"id": key, "type": kind, "order": "o-" + key, "shop": "shop-1"}) // strings have a form
	return body
}

// Spec returns the specification of the server as it is set, at an origin.
func (s *Server) Spec(origin string) spec.Spec {
	list := spec.List{
		Path:      "/events",
		Items:     "$.data",
		Sort:      s.Sort,
		ID:        "$.id",
		Time:      &spec.ListedTime{In: "$.at"},
		Delivered: &spec.Condition{In: "$.ok", Is: []string{"true"}},
		Event:     &spec.Recorded{Body: "$.event"},
	}
	if list.Sort == "" {
		list.Sort = spec.Newest
	}
	if !s.Unfiltered {
		list.Path += "?since={since}&until={until}"
	}
	if s.Post {
		list.Method, list.Path, list.Body = http.MethodPost, "/events", `{"since": "{since}", "until": "{until}"}`
	}
	list.Page = map[spec.PageKind]*spec.Page{
		spec.PageCursor: {Kind: spec.PageCursor, In: "$.next", Param: "after"},
		spec.PageLastID: {Kind: spec.PageLastID, Param: "after", More: "$.more"},
		spec.PageLink:   {Kind: spec.PageLink},
		spec.PageURL:    {Kind: spec.PageURL, In: "$.next", More: "$.more"},
		spec.PageNumber: {Kind: spec.PageNumber, Param: "page", Size: s.size()},
		spec.PageOffset: {Kind: spec.PageOffset, Param: "offset", Size: s.size()},
	}[s.Kind]
	return spec.Spec{
		Name: "acme",
		Verify: []spec.Verify{{
			Hash: spec.SHA256, Key: spec.KeyUTF8, Encoding: spec.Hex,
			Signature: spec.Signature{In: "header:X-Acme-Signature"}, Sign: []spec.Value{"body"},
		}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type"},
			Resource: []spec.Value{"json:$.order"},
			Tenant:   []spec.Value{"json:$.shop"},
		},
		Reconcile: &spec.Reconcile{
			Servers:   []spec.Server{{Name: "live", URL: spec.Pattern(origin)}},
			Auth:      spec.Auth{Token: "an API key of acme"},
			List:      list,
			Redeliver: &spec.Redeliver{Path: "/events/{id}/resend", Rate: spec.Rate{Requests: 5, Per: time.Minute}, Rights: "events: write"},
			Rate:      spec.Rate{Requests: 10, Per: time.Second},
			Rights:    "events: read",
		},
	}
}
