package api_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/problem"
)

// operator is the second of tokens.
const operator = "a-fake-token-for-operators"

// doorman is a guard with a clock, in front of pages that write who looks.
type doorman struct {
	*testing.T
	*api.Guard
	clock time.Time
	pages http.Handler
}

func newDoorman(t *testing.T, known ...api.Token) *doorman {
	d := &doorman{T: t, clock: now}
	d.Guard = api.NewGuard(known, api.GuardOptions{Now: func() time.Time { return d.clock }})
	d.pages = d.ProtectPages(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := api.VisitorOf(r.Context())
		_, _ = w.Write([]byte(v.Name + " " + string(v.Role)))
	}), func(w http.ResponseWriter, _ *http.Request, refused *problem.Details) { refused.Write(w) })
	return d
}

// from returns a request from an address, over TLS or not.
func from(address string, encrypted bool, method string) *http.Request {
	r := httptest.NewRequest(method, "/events", nil)
	r.Host, r.RemoteAddr, r.TLS = "gateway.internal", address+":50000", nil
	if encrypted {
		r.TLS = &tls.ConnectionState{}
	}
	return r
}

// login returns the cookie that a token is exchanged for, nil if it is refused.
func (d *doorman) login(r *http.Request, token string) (*http.Cookie, *problem.Details) {
	d.Helper()
	w := httptest.NewRecorder()
	refused := d.Login(w, r, token)
	cookies := w.Result().Cookies()
	if (refused == nil) != (len(cookies) == 1) {
		d.Fatalf("refused %v, with the cookies %v", refused, cookies)
	}
	if refused != nil {
		return nil, refused
	}
	return cookies[0], nil
}

// look returns the status with which a page is answered.
func (d *doorman) look(r *http.Request, c *http.Cookie) (status int, body string) {
	d.Helper()
	if c != nil {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	d.pages.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A token is exchanged for a cookie that no script reads and no other site sends, and that is for TLS alone where that was used.
func TestLogin(t *testing.T) {
	d := newDoorman(t, tokens...)
	nginx := func() *http.Request { // without a field that says so, as it does by default
		r := from("127.0.0.1", false, "POST")
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.0", 1, 0
		return r
	}
	for _, c := range []struct {
		name      string
		request   *http.Request
		origin    string
		forwarded bool
		cookie    string // its name; empty: refused
	}{
		{"TLS", from("203.0.113.7", true, "POST"), "https://gateway.internal", false, "__Host-hookonce"},
		{"this machine", from("127.0.0.1", false, "POST"), "http://127.0.0.1:8081", false, "hookonce"},
		{"a proxy with TLS on this machine", from("127.0.0.1", false, "POST"), "https://gateway.internal", true, "__Host-hookonce"},
		{"a proxy without TLS on this machine", from("127.0.0.1", false, "POST"), "http://gateway.internal", true, ""},
		{"nginx with TLS on this machine", nginx(), "https://gateway.internal", false, "__Host-hookonce"},
		{"nginx without TLS on this machine", nginx(), "http://gateway.internal", false, ""},
		{"plain HTTP from elsewhere", from("203.0.113.7", false, "POST"), "http://gateway.internal", false, ""},
		{"plain HTTP from elsewhere that says it is TLS", from("203.0.113.7", false, "POST"), "https://gateway.internal", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.request.Header.Set("Origin", c.origin)
			if c.forwarded {
				c.request.Header.Set("X-Forwarded-For", "203.0.113.9")
			}
			cookie, refused := d.login(c.request, operator)
			if c.cookie == "" {
				if refused == nil || refused.Status != http.StatusForbidden || !strings.Contains(refused.Detail, "admin_tls") {
					t.Errorf("refused with %v", refused)
				}
				return
			}
			if refused != nil {
				t.Fatal(refused.Detail)
			}
			if cookie.Name != c.cookie || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure != strings.HasPrefix(c.cookie, "__Host-") || cookie.Path != "/" || cookie.Domain != "" {
				t.Errorf("the cookie is %v", cookie)
			}
			if strings.Contains(cookie.Value, operator) {
				t.Error("the cookie has the token in it")
			}
		})
	}
}

// A session is that of its token: with its role, on every gateway that knows it, until it ends or the token is removed or changed.
func TestSession(t *testing.T) {
	d, other := newDoorman(t, tokens...), newDoorman(t, tokens[1], tokens[0])
	cookie, _ := d.login(from("127.0.0.1", false, "POST"), operator)
	read, _ := d.login(from("127.0.0.1", false, "POST"), tokens[0].Secret)
	expect := func(what string, d *doorman, r *http.Request, c *http.Cookie, status int, body string) {
		t.Helper()
		got, text := d.look(r, c)
		if got != status || body != "" && text != body {
			t.Errorf("%s: %d %q, want %d %q", what, got, text, status, body)
		}
	}
	get := func() *http.Request { return from("127.0.0.1", false, "GET") }
	post := func() *http.Request { return from("127.0.0.1", false, "POST") }
	expect("an operator looks", d, get(), cookie, 200, "oncall operator")
	expect("an operator acts", d, post(), cookie, 200, "oncall operator")
	expect("on another gateway", other, get(), cookie, 200, "oncall operator")
	expect("a reader looks", d, get(), read, 200, "dashboard read")
	expect("a reader acts", d, post(), read, 403, "")
	expect("nobody", d, get(), nil, 401, "")
	expect("a token in the address", d, httptest.NewRequest("GET", "/events?token="+operator, nil), nil, 401, "")
	expect("over the network in the clear", d, from("203.0.113.7", false, "GET"), cookie, 401, "")
	proxied := get()
	proxied.Header.Set("X-Forwarded-For", "203.0.113.9")
	expect("through a proxy without TLS", d, proxied, cookie, 401, "")
	proxied = get()
	proxied.Proto, proxied.ProtoMajor, proxied.ProtoMinor = "HTTP/1.0", 1, 0
	expect("through nginx without TLS", d, proxied, cookie, 401, "")
	for what, value := range map[string]string{
		"another name":   strings.Replace(cookie.Value, "oncall", "dashboard", 1),
		"another role":   strings.Replace(read.Value, "|read|", "|operator|", 1),
		"another expiry": strings.Replace(cookie.Value, "|1", "|2", 1),
		"no signature":   cookie.Value[:strings.LastIndexByte(cookie.Value, '|')],
		"nothing":        "|||",
	} {
		expect(what, d, get(), &http.Cookie{Name: cookie.Name, Value: value}, 401, "")
	}
	d.clock = now.Add(api.SessionTime - time.Second)
	expect("just before its end", d, get(), cookie, 200, "")
	d.clock = now.Add(api.SessionTime)
	expect("at its end", d, get(), cookie, 401, "")
	for what, left := range map[string][]api.Token{
		"the token is gone":          {tokens[0]},
		"another secret":             {tokens[0], {Name: "oncall", Secret: "changed-0123456789abcdef", Role: api.Operator}},
		"another role of that token": {tokens[0], {Name: "oncall", Secret: operator, Role: api.Read}},
	} {
		other.Reload(left)
		expect(what, other, get(), cookie, 401, "")
	}
}

// A session is that of the cookie that was given: what came in the clear on this machine, where every port gets it, is none over
// TLS, and the other way round.
func TestSessionsStayInTheirCookie(t *testing.T) {
	d := newDoorman(t, tokens...)
	plain, _ := d.login(from("127.0.0.1", false, "POST"), operator)
	secure, _ := d.login(from("203.0.113.7", true, "POST"), operator)
	for name, c := range map[string]struct {
		from   *http.Request
		cookie http.Cookie
		status int
	}{
		"the one for TLS":                 {from("203.0.113.7", true, "GET"), http.Cookie{Name: secure.Name, Value: secure.Value}, 200},
		"the one for this machine":        {from("127.0.0.1", false, "GET"), http.Cookie{Name: plain.Name, Value: plain.Value}, 200},
		"over TLS under its own name":     {from("203.0.113.7", true, "GET"), http.Cookie{Name: plain.Name, Value: plain.Value}, 401},
		"over TLS under the other name":   {from("203.0.113.7", true, "GET"), http.Cookie{Name: secure.Name, Value: plain.Value}, 401},
		"here under the name for TLS":     {from("127.0.0.1", false, "GET"), http.Cookie{Name: secure.Name, Value: plain.Value}, 401},
		"that for TLS under a plain name": {from("127.0.0.1", false, "GET"), http.Cookie{Name: plain.Name, Value: secure.Value}, 401},
	} {
		if got, _ := d.look(c.from, &c.cookie); got != c.status {
			t.Errorf("%s: %d, want %d", name, got, c.status)
		}
	}
}

// Whoever guesses in the form is slowed down as whoever guesses in a header is, and the right token is let in all the same.
func TestLoginIsBounded(t *testing.T) {
	d := newDoorman(t, tokens...)
	for range api.MaxWrongTokens {
		if _, refused := d.login(from("203.0.113.7", true, "POST"), "wrong"); refused.Status != http.StatusUnauthorized {
			t.Fatalf("refused with %d", refused.Status)
		}
	}
	if _, refused := d.login(from("203.0.113.7", true, "POST"), "wrong"); refused.Status != http.StatusTooManyRequests {
		t.Errorf("one too many is answered %d", refused.Status)
	}
	if _, refused := d.login(from("203.0.113.7", true, "POST"), operator); refused != nil {
		t.Errorf("the right one is refused: %s", refused.Detail)
	}
}
