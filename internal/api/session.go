package api

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/header"
)

// Visitor is who sent a request that a [Guard] let through.
type Visitor struct {
	Name string // of the token; "local" where there are none
	Role Role
	// Session is set if the visitor is known by the cookie of [Guard.Login].
	Session bool
	// Payloads is set if the visitor may look at bodies and headers of events.
	Payloads bool
}

// local is the visitor where there are no tokens.
var local = Visitor{Name: "local", Role: Operator, Payloads: true}

type visitorKey struct{}

// VisitorOf returns who sent the request whose context this is, nobody if no [Guard] let it through.
func VisitorOf(ctx context.Context) Visitor {
	v, _ := ctx.Value(visitorKey{}).(Visitor)
	return v
}

// actor returns the name that stands in the audit log for what a request does.
func actor(ctx context.Context) string { return VisitorOf(ctx).Name }

// SessionTime is how long a browser is known after [Guard.Login].
const SessionTime = 12 * time.Hour

// The names of the cookie. Browsers take the first over TLS alone, for this host alone, and send it nowhere else.
const (
	secureCookie = "__Host-hookonce"
	plainCookie  = "hookonce"
)

// sessionKey returns what the sessions of a token are signed with. Every gateway that knows the token derives the same one,
// and none has it any more when the token is gone.
func sessionKey(secret string) []byte {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "hookonce session 1", sha256.Size)
	if err != nil {
		panic(err) // the length is one that HKDF has
	}
	return key
}

// session is what the cookie says: name|role|expiry|HMAC. The name of the cookie is signed as well: one that was given for plain
// HTTP on this machine, whose ports share their cookies, is none for TLS.
type session struct {
	name    string
	role    Role
	expires int64 // seconds since 1970
}

// cookie returns the session as the cookie of this name.
func (s session) cookie(name string, key []byte) *http.Cookie {
	claims := s.name + "|" + string(s.role) + "|" + strconv.FormatInt(s.expires, 10)
	return cookie(name, claims+"|"+signature(name, claims, key), SessionTime)
}

func signature(cookie, claims string, key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(cookie + "|" + claims))
	return hex.EncodeToString(mac.Sum(nil))
}

// readSession returns the bearer of a cookie, nil unless one of the tokens signed it under its name, with the role that it still
// has, and it has not ended.
func readSession(c *http.Cookie, tokens []digest, now time.Time) *digest {
	if c == nil {
		return nil
	}
	end := strings.LastIndexByte(c.Value, '|')
	if end < 0 {
		return nil
	}
	claims, mac := c.Value[:end], c.Value[end+1:]
	parts := strings.Split(claims, "|")
	if len(parts) != 3 {
		return nil
	}
	expires, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || now.Unix() >= expires {
		return nil
	}
	for i := range tokens {
		t := &tokens[i]
		if t.name == parts[0] && string(t.role) == parts[1] && hmac.Equal([]byte(mac), []byte(signature(c.Name, claims, t.sessions))) {
			return t
		}
	}
	return nil
}

// cookieOf returns the cookie that a request may be known by, nil if there is none. One that a browser sent in the clear over a
// network is none: whoever listened has it too.
func cookieOf(r *http.Request) *http.Cookie {
	if r.TLS == nil && !fromLoopback(r) {
		return nil
	}
	if c, err := r.Cookie(secureCookie); err == nil {
		return c
	}
	if c, err := r.Cookie(plainCookie); err == nil && r.TLS == nil && !header.Proxied(r) {
		return c
	}
	return nil
}

// channel says how a browser's secrets come here: whether over TLS, ours or that of a proxy on this machine, and whether nobody
// on a network can read them.
func channel(r *http.Request) (encrypted, private bool) {
	if r.TLS != nil {
		return true, true
	}
	encrypted = strings.HasPrefix(r.Header.Get("Origin"), "https://")
	return encrypted, fromLoopback(r) && (encrypted || !header.Proxied(r))
}

func fromLoopback(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && remote.Addr().Unmap().IsLoopback()
}

// cookie returns the cookie with a value, or with none, which ends it. Links from elsewhere, such as those of notices in a mail,
// bring it along; what changes something is not asked for by a link, and refused from other sites.
func cookie(name, value string, age time.Duration) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(age / time.Second), Secure: name == secureCookie, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
