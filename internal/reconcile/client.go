package reconcile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// The bounds of what is asked and answered.
const (
	maxAnswer  = 64 << 20 // bytes; a page of a hundred events with large bodies
	maxTries   = 6
	maxWait    = 15 * time.Minute // that a sender may ask for
	firstWait  = time.Second
	oneRequest = time.Minute
	maxToken   = 16 << 10
)

// client asks the API of one sender.
type client struct {
	spec  *spec.Reconcile
	with  map[string]string
	base  string
	place spec.Pattern
	token string
	http  http.RoundTripper // not a client: that reads Location, and tells what stands there
	opts  *Options
	again pace // of redeliveries

	access   string // of OAuth
	expires  time.Time
	accessed bool
}

// newClient binds the settings.
func newClient(opts *Options) (*client, error) {
	r := opts.Provider.Spec().Reconcile
	if r == nil {
		return nil, spec.ErrNotListed
	}
	base, place, err := r.Base(opts.With)
	if err != nil {
		return nil, err
	}
	if err := checkToken(opts.Token, r.Auth); err != nil {
		return nil, err
	}
	again := pace{}
	if r.Redeliver != nil {
		again.every = r.Redeliver.Rate.Every()
	}
	return &client{
		spec: r, with: opts.With, base: base, place: place, token: opts.Token, opts: opts, again: again, http: opts.Transport,
	}, nil
}

// checkToken refuses tokens that no request could carry, without showing them.
func checkToken(token string, auth spec.Auth) error {
	what := auth.Token
	if what != "" {
		what = "; it is " + what
	}
	switch {
	case token == "":
		return fmt.Errorf("token: is missing%s", what)
	case len(token) > maxToken:
		return fmt.Errorf("token: has %d bytes, and at most %d are taken%s", len(token), maxToken, what)
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return fmt.Errorf("token: has a space, a line break or a letter in it that no token has%s", what)
	case auth.Kind == spec.AuthOAuth && !strings.Contains(token, ":"):
		return fmt.Errorf("token: is not of the form id:secret%s", what)
	}
	return nil
}

// ask is one request, before it has a token.
type ask struct {
	doing  string // for errors
	method string
	url    string
	body   []byte
	rights string // that the token needs
	pace   *pace
	// once is set if the request may not be repeated where nobody knows whether it was carried out.
	once bool
}

// answer is what came back.
type answer struct {
	asked  time.Time // by our clock
	status int
	header http.Header
	body   []byte
}

// pace keeps the time between requests.
type pace struct {
	every time.Duration
	next  time.Time
}

// wait waits until the next request may be made.
func (c *client) wait(ctx context.Context, p *pace) error {
	now := c.opts.Now()
	if d := p.next.Sub(now); d > 0 {
		if err := c.opts.Sleep(ctx, d); err != nil {
			return err
		}
		now = c.opts.Now()
	}
	p.next = now.Add(p.every)
	return ctx.Err()
}

// do makes a request until it is answered with success or with an error that lasts. The error names neither the token nor
// anything of the answer's body.
func (c *client) do(ctx context.Context, q ask) (*answer, error) {
	backoff := firstWait
	for try := 1; ; try++ {
		if err := c.wait(ctx, q.pace); err != nil {
			return nil, err
		}
		a, err := c.request(ctx, q)
		after, again := backoff, true
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && (q.once || !passing(err)):
			return nil, err
		case err != nil:
		case a.status >= 200 && a.status <= 299:
			return a, nil
		default:
			after, again = c.later(a, q, backoff)
			if a.status == http.StatusUnauthorized && c.forgetAccess() {
				again, after = true, 0
			}
			err = c.problem(a, q, after)
		}
		if !again || try == maxTries {
			return nil, err
		}
		if after > maxWait {
			return nil, err
		}
		c.opts.Log.InfoContext(ctx, "the sender's API is asked again", "doing", q.doing, "try", try+1, "after", after, "error", err)
		if err := c.opts.Sleep(ctx, after); err != nil {
			return nil, err
		}
		backoff *= 2
	}
}

// passing reports whether an error of the connection may be gone at the next try.
func passing(err error) bool {
	return !errors.Is(err, ErrLies) && !errors.Is(err, ErrRights)
}

// request makes one request.
func (c *client) request(ctx context.Context, q ask) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, oneRequest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, q.method, q.url, bytes.NewReader(q.body))
	if err != nil {
		return nil, lies("%s: there is no URL to ask", q.doing)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "hookonce")
	if len(q.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, pattern := range c.spec.Header {
		if !slices.ContainsFunc(pattern.Names(), func(name string) bool { return c.with[name] == "" }) {
			req.Header.Set(name, pattern.Fill(c.with, strings.TrimSpace))
		}
	}
	if err := c.authorize(ctx, req); err != nil {
		return nil, err
	}
	return c.send(req, q.doing)
}

// Errors after the first byte of an answer. Those of the transport quote what the server said, which may be the token.
var (
	errNoHTTP = errors.New("the answer is no HTTP, or broke off")
	errBroken = errors.New("the answer ended early")
)

// send sends a request and reads its answer. It follows no redirect.
func (c *client) send(req *http.Request, doing string) (*answer, error) {
	asked := c.opts.Now()
	var answered atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { answered.Store(true) }})
	resp, err := c.http.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if answered.Load() {
			err = errNoHTTP
		}
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", doing, errBroken)
	case len(body) > maxAnswer:
		return nil, lies("%s: the answer is larger than %d MiB", doing, maxAnswer>>20)
	}
	return &answer{asked: asked, status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// authorize presents the token.
func (c *client) authorize(ctx context.Context, req *http.Request) error {
	switch a := c.spec.Auth; a.Kind {
	case spec.AuthBasic:
		user, password, _ := strings.Cut(c.token, ":")
		req.SetBasicAuth(user, password)
	case spec.AuthHeader:
		req.Header.Set(a.Header, c.token)
	case spec.AuthOAuth:
		access, err := c.accessToken(ctx)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+access)
	default:
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return nil
}

// accessToken fetches an access token with the client's credentials, and keeps it until shortly before it ends.
func (c *client) accessToken(ctx context.Context) (string, error) {
	if c.access != "" && c.opts.Now().Before(c.expires) {
		return c.access, nil
	}
	const doing = "fetching an access token"
	address := c.base + c.spec.Auth.TokenPath.Fill(c.with, url.PathEscape)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return "", lies("%s: there is no URL to ask", doing)
	}
	id, secret, _ := strings.Cut(c.token, ":")
	req.SetBasicAuth(id, secret)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a, err := c.send(req, doing)
	if err != nil {
		return "", err
	}
	if a.status != http.StatusOK {
		return "", c.problem(a, ask{doing: doing}, 0)
	}
	var granted struct {
		Token   string  `json:"access_token"`
		Expires float64 `json:"expires_in"`
	}
	if json.Unmarshal(a.body, &granted) != nil || checkToken(granted.Token, spec.Auth{}) != nil {
		return "", lies("%s: the answer has none", doing)
	}
	lasts := time.Duration(min(max(granted.Expires, 0), 86400)) * time.Second
	c.access, c.expires = granted.Token, c.opts.Now().Add(lasts-lasts/10)
	return c.access, nil
}

// forgetAccess forgets an access token that was not accepted, and reports whether another one is worth a try: once in a run.
func (c *client) forgetAccess() bool {
	if c.access == "" || c.accessed {
		return false
	}
	c.access, c.accessed = "", true
	return true
}

// later returns how long to wait before the request is made again, and whether that makes sense.
func (c *client) later(a *answer, q ask, backoff time.Duration) (time.Duration, bool) {
	limited := a.status == http.StatusTooManyRequests
	asked, says := retryAfter(a.header, c.opts.Now())
	switch {
	case limited || a.status == http.StatusServiceUnavailable:
		return max(asked, backoff), true
	case a.status == http.StatusForbidden && says:
		return max(asked, backoff), true // GitHub's way to say that there were too many requests
	case a.status == http.StatusInternalServerError || a.status == http.StatusBadGateway || a.status == http.StatusGatewayTimeout:
		return max(asked, backoff), !q.once
	}
	return 0, false
}

// retryAfter returns how long the answer asks to wait: in Retry-After, or until the reset of a limit that is used up.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if text := h.Get("Retry-After"); text != "" {
		if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds >= 0 {
			return time.Duration(seconds) * time.Second, true
		}
		if at, err := http.ParseTime(text); err == nil {
			return max(at.Sub(now), 0), true
		}
	}
	if h.Get("X-RateLimit-Remaining") == "0" {
		if at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			return max(time.Unix(at, 0).Sub(now), 0), true
		}
	}
	return 0, false
}

// problem says what an answer means that is no success.
func (c *client) problem(a *answer, q ask, after time.Duration) error {
	e := &AnswerError{Doing: q.doing, Status: a.status, After: after}
	_, limited := retryAfter(a.header, c.opts.Now())
	switch {
	case a.status == http.StatusTooManyRequests, a.status == http.StatusForbidden && limited:
		e.Advice = "it was asked too often"
		if after > maxWait {
			e.Advice += fmt.Sprintf("; come again in %s", spec.FormatDuration(after.Round(time.Minute)))
		}
	case a.status == http.StatusUnauthorized:
		e.Advice, e.rights = "the token is wrong, has ended, or is of another environment", true
		if c.spec.Auth.Token != "" {
			e.Advice += "; it is " + c.spec.Auth.Token
		}
	case a.status == http.StatusForbidden:
		e.Advice, e.rights = "the token lacks a right", true
		if q.rights != "" {
			e.Advice += "; it needs " + q.rights
		}
	case a.status == http.StatusNotFound && q.once:
		e.Advice = "the sender does not have it any more, or a right is missing"
		if q.rights != "" {
			e.Advice += ": " + q.rights
		}
	case a.status == http.StatusNotFound:
		e.Advice = "what the settings name is not there; some senders say so, too, where a right is missing"
		if q.rights != "" {
			e.Advice += ": " + q.rights
		}
	case a.status >= 300 && a.status <= 399:
		e.Advice = "it leads elsewhere, and the token is not sent there; check the server"
	}
	return e
}

// brackets escapes those in names of parameters, as in created[gte], which some servers do not take as they are.
var brackets = strings.NewReplacer("[", "%5B", "]", "%5D")

// path returns the URL of a path with its query. Values are escaped; a part of the query that has an optional setting which is
// not set is left out, and one with a list is repeated.
func (c *client) path(p spec.Pattern, values map[string]string) string {
	text := strings.ReplaceAll(string(p), "{place}", string(c.place))
	path, query, _ := strings.Cut(text, "?")
	address := c.base + spec.Pattern(path).Fill(values, url.PathEscape)
	var parts []string
	for part := range strings.SplitSeq(query, "&") {
		parts = append(parts, c.parameter(spec.Pattern(part), values)...)
	}
	if query = strings.Join(parts, "&"); query != "" {
		address += "?" + brackets.Replace(query)
	}
	return address
}

// parameter fills in one part of a query.
func (c *client) parameter(part spec.Pattern, values map[string]string) []string {
	if part == "" {
		return nil
	}
	for _, name := range part.Names() {
		if values[name] == "" {
			return nil
		}
		if !c.isList(name) {
			continue
		}
		var parts []string
		for one := range strings.SplitSeq(values[name], ",") {
			if one != "" {
				parts = append(parts, part.Fill(with(values, name, one), url.QueryEscape))
			}
		}
		return parts
	}
	return []string{part.Fill(values, url.QueryEscape)}
}

func (c *client) isList(name string) bool {
	for _, s := range c.spec.Settings {
		if s.Name == name {
			return s.List
		}
	}
	return false
}

// body fills in a JSON body.
func (c *client) body(p spec.Pattern, values map[string]string) []byte {
	if p == "" {
		return nil
	}
	return []byte(p.Fill(values, func(text string) string {
		quoted, _ := json.Marshal(text) // a string always has a form in JSON
		return string(quoted[1 : len(quoted)-1])
	}))
}

// with returns the values with one more.
func with(values map[string]string, name, value string) map[string]string {
	more := make(map[string]string, len(values)+1)
	for k, v := range values {
		more[k] = v
	}
	more[name] = value
	return more
}

// sameOrigin reports whether two URLs have scheme, host and port in common, so that a token for one may go to the other.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}

// sum identifies what was seen before.
type sum [16]byte

func sumOf(parts ...[]byte) (s sum) {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		for i := range size {
			size[i] = byte(len(part) >> (8 * i))
		}
		h.Write(size[:])
		h.Write(part)
	}
	copy(s[:], h.Sum(nil))
	return s
}
