package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
)

// Role says what the bearer of a token may do.
type Role string

// The roles.
const (
	Read     Role = "read"     // look at everything
	Operator Role = "operator" // and change it
)

// Token lets its bearer in.
type Token struct {
	Name   string // of the bearer, as it stands in the audit record
	Secret string
	Role   Role
}

// Guard decides who may ask. With tokens it asks for one. Without, it lets in whoever is on this machine,
// but no page of another site in a browser here: neither one that sends requests to this address, nor
// one whose own name has been made to resolve to it. It is safe for concurrent use.
type Guard struct {
	tokens atomic.Pointer[[]digest]
}

// digest is a token of which only the hash is kept. Comparing hashes takes the same time whatever the
// length of what is presented, and whatever of it is right.
type digest struct {
	name string
	role Role
	sum  [sha256.Size]byte
}

// NewGuard returns a guard who knows these tokens.
func NewGuard(tokens []Token) *Guard {
	g := &Guard{}
	g.Reload(tokens)
	return g
}

// Reload makes these the tokens that the guard knows, from the next request on.
func (g *Guard) Reload(tokens []Token) {
	digests := make([]digest, 0, len(tokens))
	for _, t := range tokens {
		digests = append(digests, digest{t.Name, t.Role, sha256.Sum256([]byte(t.Secret))})
	}
	g.tokens.Store(&digests)
}

// Protect lets requests through to next whose sender may make them: reading takes any role, changing
// takes that of an operator.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, refused := g.admit(r)
		if refused != nil {
			refused.write(w)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
	})
}

// local is the actor where there are no tokens.
const local = "local"

type actorKey struct{}

// actor returns who sent the request whose context this is.
func actor(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}

// admit returns who sends a request, or why it is refused.
func (g *Guard) admit(r *http.Request) (actor string, refused *Problem) {
	tokens := *g.tokens.Load()
	if len(tokens) == 0 {
		return local, admitLocal(r)
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", unauthorized("this needs a token: send Authorization: Bearer and one of admin_tokens")
	}
	who := bearer(tokens, strings.TrimSpace(secret))
	switch {
	case who == nil:
		return "", unauthorized("this token is not known here")
	case who.role != Operator && r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "", &Problem{Status: http.StatusForbidden, Detail: "the token of " + who.name + " may only read; this needs the role operator"}
	}
	return who.name, nil
}

// bearer returns whose token this is, nil if nobody's. It compares with all of them.
func bearer(tokens []digest, secret string) (who *digest) {
	sum := sha256.Sum256([]byte(secret))
	for i := range tokens {
		if subtle.ConstantTimeCompare(sum[:], tokens[i].sum[:]) == 1 {
			who = &tokens[i]
		}
	}
	return who
}

// admitLocal refuses what does not come from this machine, or comes from a page of another site.
func admitLocal(r *http.Request) *Problem {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	switch {
	case err != nil || !remote.Addr().Unmap().IsLoopback():
		return forbidden("without admin_tokens in the configuration only this machine is answered")
	case !loopbackHost(r.Host):
		return forbidden("without admin_tokens in the configuration requests must name a loopback address, such as 127.0.0.1, in Host")
	case forwarded(r):
		return forbidden("without admin_tokens in the configuration nothing that came through a proxy is answered: whoever reaches the proxy would be an operator")
	case foreign(r):
		return forbidden("a page of another site may not ask this")
	}
	return nil
}

// loopbackHost reports whether a Host header names this machine in a way that no name server decides.
func loopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// forwarded reports whether a proxy passed the request on. Its own address says nothing about the sender's.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// foreign reports whether a browser sends the request for a page that is not ours.
func foreign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}
