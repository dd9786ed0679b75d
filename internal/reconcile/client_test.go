package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/provider/spec"
)

// TestPace keeps to the rate that the sender states.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor}, func(s *spec.Spec) { s.Reconcile.Rate = spec.Rate{Requests: 30, Per: time.Minute} })
		w.server.Add(entries(50)...)
		w.mustRun()
		requests := w.server.Requests()
		for i := 1; i < len(requests); i++ {
			if d := requests[i].At.Sub(requests[i-1].At); d != 2*time.Second {
				t.Errorf("request %d came %v after the one before", i+1, d)
			}
		}
		if len(requests) != 5 {
			t.Errorf("%d requests", len(requests))
		}
	})
}

// answerOnce returns what answers each of the first requests with a status and headers, and leaves the others to the server.
func answerFirst(times, status int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if n++; n > times {
			return false
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error": "what `+reconciletest.Token+` means"}`)
		return true
	}
}

// TestAgain asks again where that makes sense, not before the sender wants it, and not for ever.
func TestAgain(t *testing.T) {
	reset := fmt.Sprint(time.Date(2000, 1, 1, 0, 3, 0, 0, time.UTC).Unix()) // the clock of a bubble begins with 2000
	date := time.Date(2000, 1, 1, 0, 2, 0, 0, time.UTC).Format(http.TimeFormat)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		took   time.Duration
		fails  string
	}{
		"429, seconds":              {answer: answerFirst(1, 429, "Retry-After", "77"), took: 77 * time.Second},
		"429, a date":               {answer: answerFirst(1, 429, "Retry-After", date), took: 2 * time.Minute},
		"429, says nothing":         {answer: answerFirst(3, 429), took: 7 * time.Second},
		"503, seconds":              {answer: answerFirst(2, 503, "Retry-After", "60"), took: 2 * time.Minute},
		"403, the limit is used up": {answer: answerFirst(1, 403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset), took: 3 * time.Minute},
		"500":                       {answer: answerFirst(5, 500), took: 31 * time.Second},
		"502":                       {answer: answerFirst(1, 502), took: time.Second},
		"500 for ever":              {answer: answerFirst(100, 500), took: 31 * time.Second, fails: "listing events: the API answered 500"},
		"429 for hours":             {answer: answerFirst(1, 429, "Retry-After", "7200"), fails: "it was asked too often; come again in 2h"},
		"429, nonsense":             {answer: answerFirst(1, 429, "Retry-After", "-5"), took: time.Second},
		"400":                       {answer: answerFirst(1, 400), fails: "listing events: the API answered 400"},
		"404":                       {answer: answerFirst(1, 404), fails: "what the settings name is not there; some senders say so, too, where a right is missing: events: read"},
		"a redirect":                {answer: answerFirst(1, 302, "Location", "https://evil.example/"), fails: "it leads elsewhere, and the token is not sent there"},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Intercept: c.answer}, func(s *spec.Spec) { s.Reconcile.Rate = spec.Rate{Requests: 1000, Per: time.Second} })
			w.server.Add(entries(3)...)
			began := time.Now()
			r, err := w.run()
			took := time.Since(began).Round(time.Second)
			switch {
			case took != c.took:
				t.Errorf("it took %v, not %v", took, c.took)
			case c.fails == "" && (err != nil || r.Missing != 3):
				t.Errorf("%v, %+v", err, r)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("%v, want %s", err, c.fails)
			}
			for _, request := range w.server.Requests() {
				if !strings.HasPrefix(request.URL, reconciletest.Origin) {
					t.Errorf("%s was asked", request.URL)
				}
			}
		})
	}
}

// TestRights says which right is missing.
func TestRights(t *testing.T) {
	for status, want := range map[int]string{
		401: "listing events: the API answered 401: the token is wrong, has ended, or is of another environment; it is an API key of acme",
		403: "listing events: the API answered 403: the token lacks a right; it needs events: read",
	} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Intercept: answerFirst(9, status)})
			_, err := w.run()
			if !errors.Is(err, reconcile.ErrRights) || err.Error() != want {
				t.Error(err)
			}
			if len(w.server.Requests()) != 1 {
				t.Errorf("asked %d times", len(w.server.Requests()))
			}
		})
	}
}

// TestLiars ends lists that cannot be right with an error that says so, and reports what was found until then.
func TestLiars(t *testing.T) {
	text := func(body string, header ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("after") == "" && r.URL.Query().Get("page") == "" {
				return false
			}
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	fresh := 0
	endless := func(entry string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("after") == "" {
				return false
			}
			fresh++
			_, _ = fmt.Fprintf(w, `{"data": [%s], "more": true, "next": "cursor_%d"}`, entry, fresh)
			return true
		}
	}
	for name, c := range map[string]struct {
		kind   spec.PageKind
		answer func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"the same cursor again":          {spec.PageCursor, text(`{"data": [], "next": "evt_011"}`), "page 3 leads back to page 3"},
		"cursors in a circle":            {spec.PageCursor, circle(), "page 4 leads back to page 3"},
		"another cursor for ever":        {spec.PageCursor, endless(""), "100 pages in a row had nothing new"},
		"the same entry for ever":        {spec.PageCursor, endless(`{"id": "evt_019", "at": "2000-01-01T00:00:00Z"}`), "100 pages in a row had nothing new"},
		"another host":                   {spec.PageURL, text(`{"data": [], "more": true, "next": "https://evil.example/events?after=x"}`), `the next page is said to be at another server ("evil.example"), to which the token is not sent`},
		"another host in a Link":         {spec.PageLink, text(`{"data": []}`, "Link", `<https://evil.example/>; rel="next"`), "at another server"},
		"another scheme":                 {spec.PageURL, text(`{"data": [], "more": true, "next": "http://api.acme.example/events?after=x"}`), "at another server"},
		"another port":                   {spec.PageURL, text(`{"data": [], "more": true, "next": "https://api.acme.example:8443/events"}`), "at another server"},
		"a host with a name before it":   {spec.PageURL, text(`{"data": [], "more": true, "next": "https://api.acme.example@evil.example/"}`), "at another server"},
		"a user in the URL":              {spec.PageURL, text(`{"data": [], "more": true, "next": "https://me@api.acme.example/"}`), "at another server"},
		"a URL without end":              {spec.PageURL, text(`{"data": [], "more": true, "next": "` + reconciletest.Origin + `/events?after=` + strings.Repeat("x", 9000) + `"}`), "the URL of the next page is none"},
		"no URL":                         {spec.PageURL, text(`{"data": [], "more": true, "next": "https://%zz"}`), "the URL of the next page is none"},
		"another page, and no URL":       {spec.PageURL, text(`{"data": [], "more": true}`), "the answer says that there is another page, and not where"},
		"another page, and an empty URL": {spec.PageURL, text(`{"data": [], "more": true, "next": ""}`), "another page, and not where"},
		"no JSON":                        {spec.PageCursor, text(`<html>`), "the answer is no JSON"},
		"no list":                        {spec.PageCursor, text(`{"data": {"id": 1}}`), "what should be the list, at $.data, is none"},
		"an object without the list":     {spec.PageCursor, text(`{"items": []}`), "the answer has no list at $.data"},
		"another form":                   {spec.PageCursor, text(`[1, 2]`), "the answer is no list"},
		"nested without end":             {spec.PageCursor, text(strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)), "the answer is no JSON"},
		"a page without end":             {spec.PageCursor, text(`{"data": [` + strings.Repeat(`1,`, 20_000) + `1]}`), "a page has more than 10000 entries"},
		"an answer without end":          {spec.PageCursor, text(`{"data": [], "x": "` + strings.Repeat("x", 64<<20) + `"}`), "the answer is larger than 64 MiB"},
		"a cursor without end":           {spec.PageCursor, text(`{"data": [], "next": "` + strings.Repeat("x", 9000) + `"}`), "the cursor of the next page has 9000 bytes"},
		"no id to go on from":            {spec.PageLastID, text(`{"data": [{"at": "2000-01-01T00:00:00Z"}], "more": true}`), "the last entry of a page has no id"},
		"an empty page, not the last":    {spec.PageLastID, text(`{"data": [], "more": true}`), "a page is empty and said not to be the last"},
		"no word of another page":        {spec.PageLastID, text(`{"data": [{"id": "evt_020"}]}`), "the answer does not say at $.more whether there is another page"},
		"an error called success":        {spec.PageCursor, text(`{"error": {"message": "` + reconciletest.Token + `"}}`), `the answer is said to be good, and has "error" in the place of the list`},
		"a list that moves for ever":     {spec.PageNumber, moving(), "it was read 6 times and still had something new"},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Kind: c.kind, Sort: spec.Oldest, Intercept: c.answer}, func(s *spec.Spec) { s.Reconcile.Rate = spec.Rate{Requests: 1000, Per: time.Second} })
			w.server.Add(entries(25)...)
			r, err := w.run()
			if !errors.Is(err, reconcile.ErrLies) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if r.Missing < 10 || !r.Settled.Equal(r.Since) {
				t.Errorf("of the first page %d are missing; settled %v", r.Missing, r.Settled)
			}
			for _, request := range w.server.Requests() {
				if !strings.HasPrefix(request.URL, reconciletest.Origin+"/") {
					t.Errorf("%s was asked", request.URL)
				}
			}
			if len(w.server.Requests()) > 200 {
				t.Errorf("%d requests", len(w.server.Requests()))
			}
		})
	}
}

// circle answers with two cursors by turns.
func circle() func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		next := map[string]string{"": "a", "a": "b", "b": "a"}[r.URL.Query().Get("after")]
		if next == "a" && r.URL.Query().Get("after") == "" {
			return false // the first page is right
		}
		if next == "" {
			next = "a"
		}
		_, _ = fmt.Fprintf(w, `{"data": [{"id": "x_%s"}], "next": %q}`, r.URL.Query().Get("after"), next)
		return true
	}
}

// moving answers each second page with an entry that was never there.
func moving() func(http.ResponseWriter, *http.Request) bool {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("page") != "2" {
			return false
		}
		n++
		_, _ = fmt.Fprintf(w, `{"data": [{"id": "moved_%d"}]}`, n)
		return true
	}
}

// failing breaks connections.
type failing struct {
	*reconciletest.Server
	fail func(*http.Request) error
}

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.Server.RoundTrip(r)
	if broken := f.fail(r); broken != nil {
		return nil, broken
	}
	return resp, err
}

// TestConnection asks again after a connection broke, and names no URL in the error.
func TestConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		w.server.Add(entries(2)...)
		n := 0
		w.opts.Transport = failing{w.server, func(*http.Request) error {
			if n++; n <= 2 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}}
		if r := w.mustRun(); r.Missing != 2 {
			t.Errorf("%+v", r)
		}
		n = -1000
		if _, err := w.run(); err == nil || err.Error() != "listing events: unexpected EOF" {
			t.Error(err)
		}
	})
}

// oauth answers as a server of access tokens does, whose tokens are good for some requests.
type oauth struct {
	*reconciletest.Server
	t       *testing.T
	granted int
	lasts   int
	uses    int
	fetched []string
}

func (o *oauth) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/oauth/token" {
		access := fmt.Sprintf("Bearer fake-access-token-%d", o.granted)
		if o.uses++; r.Header.Get("Authorization") != access || o.lasts > 0 && o.uses > o.lasts {
			return &http.Response{StatusCode: 401, Body: http.NoBody, Request: r}, nil
		}
		r.Header.Set("Authorization", "Bearer "+reconciletest.Token)
		return o.Server.RoundTrip(r)
	}
	id, secret, _ := r.BasicAuth()
	body, _ := io.ReadAll(r.Body)
	if id != "client" || secret != "fake-client-secret" || string(body) != "grant_type=client_credentials" || r.Method != http.MethodPost {
		o.t.Errorf("%s %s %s %s", r.Method, id, secret, body)
	}
	o.granted++
	o.uses = 0
	o.fetched = append(o.fetched, r.URL.String())
	answer := fmt.Sprintf(`{"access_token": "fake-access-token-%d", "expires_in": 3600}`, o.granted)
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func oauthWorld(t *testing.T, rate spec.Rate) (*world, *oauth) {
	w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor}, func(s *spec.Spec) {
		s.Reconcile.Auth = spec.Auth{Kind: spec.AuthOAuth, TokenPath: "/oauth/token"}
		s.Reconcile.Rate = rate
	})
	w.server.Add(entries(50)...)
	w.opts.Token = "client:fake-client-secret"
	o := &oauth{Server: w.server, t: t}
	w.opts.Transport = o
	return w, o
}

// TestOAuth fetches an access token with the credentials, keeps it while it lasts, and fetches another then.
func TestOAuth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := oauthWorld(t, spec.Rate{Requests: 1, Per: 20 * time.Minute})
		if r := w.mustRun(); r.Missing != 50 || o.granted != 2 || o.fetched[0] != reconciletest.Origin+"/oauth/token" {
			t.Errorf("%d tokens, %+v", o.granted, r)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, o := oauthWorld(t, spec.Rate{Requests: 10, Per: time.Second})
		o.lasts = 3
		if r := w.mustRun(); r.Missing != 50 || o.granted != 2 {
			t.Errorf("after a token that ended early: %d tokens, %+v", o.granted, r)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, o := oauthWorld(t, spec.Rate{Requests: 10, Per: time.Second})
		o.lasts = 1
		if _, err := w.run(); !errors.Is(err, reconcile.ErrRights) || o.granted != 2 {
			t.Errorf("tokens that are good for nothing: %v after %d", err, o.granted)
		}
	})
}

// TestOAuthRefused asks for an access token with wrong credentials once: a sender may lock an account that is tried too often.
func TestOAuthRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: answerFirst(100, 401)}, func(s *spec.Spec) {
			s.Reconcile.Auth = spec.Auth{Kind: spec.AuthOAuth, TokenPath: "/oauth/token"}
		})
		w.opts.Token = "client:fake-client-secret"
		if _, err := w.run(); !errors.Is(err, reconcile.ErrRights) || len(w.server.Requests()) != 1 {
			t.Errorf("%v, after %d requests", err, len(w.server.Requests()))
		}
	})
}

// silent takes requests and answers none.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestSilentSender: a sender that takes requests and answers none is given up, a minute for each of them.
func TestSilentSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		w.opts.Transport = silent{}
		began := time.Now()
		if _, err := w.run(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 6*time.Minute+31*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestAuth presents the token as the sender wants it.
func TestAuth(t *testing.T) {
	for want, c := range map[string]struct {
		auth  spec.Auth
		token string
		in    string
	}{
		"Bearer fake-token-of-the-api":   {spec.Auth{}, reconciletest.Token, "Authorization"},
		"Basic ZmFrZS1rZXk6":             {spec.Auth{Kind: spec.AuthBasic}, "fake-key", "Authorization"},
		"Basic ZmFrZS11c2VyOmZha2UtcHc=": {spec.Auth{Kind: spec.AuthBasic}, "fake-user:fake-pw", "Authorization"},
		"fake-private":                   {spec.Auth{Kind: spec.AuthHeader, Header: "PRIVATE-TOKEN"}, "fake-private", "Private-Token"},
	} {
		bubble(t, want, func(t *testing.T) {
			got := ""
			w := newWorld(t, &reconciletest.Server{Intercept: func(w http.ResponseWriter, r *http.Request) bool {
				got = r.Header.Get(c.in)
				_, _ = io.WriteString(w, `{"data": []}`)
				return true
			}}, func(s *spec.Spec) { s.Reconcile.Auth = c.auth })
			w.opts.Token = c.token
			w.mustRun()
			if got != want {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestOverTheNetwork asks a server on this machine, over plain HTTP, which is permitted there alone; a redirect is not followed.
func TestOverTheNetwork(t *testing.T) {
	server := &reconciletest.Server{Kind: spec.PageURL, Size: 2}
	web := httptest.NewServer(server)
	defer web.Close()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	all := entries(5)
	server.Add(all...)
	p, err := spec.New(server.Spec(web.URL), spec.Settings{Secrets: spec.Secrets(reconciletest.Secret)})
	if err != nil {
		t.Fatal(err)
	}
	opts := reconcile.Options{Source: "billing", Provider: p, Token: reconciletest.Token, Ledger: &ledger{}, Since: time.Now().Add(-48 * time.Hour)}
	r, err := reconcile.Run(t.Context(), opts)
	if err != nil || r.Missing != 5 {
		t.Errorf("%v, %+v", err, r)
	}
	server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	if _, err = reconcile.Run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "the token is not sent there") {
		t.Error(err)
	}
}
