package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/loglimit"
	"github.com/hookonce/hookonce/internal/lru"
	"github.com/hookonce/hookonce/internal/problem"
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
	Name   string // of the bearer, as it stands in the audit log
	Secret string
	Role   Role
	// Payloads lets its bearer look at bodies and headers of events, as [Options.Payloads] says.
	Payloads bool
}

// Guard decides who may ask. With tokens it asks for one. Without, it lets in whoever is on this machine,
// but no page of another site in a browser here: neither one that sends requests to this address, nor
// one whose own name has been made to resolve to it. Wrong tokens are counted, logged and, if an address sends many, answered
// 429; the right one lets in all the same, so that nobody is locked out by a neighbour. It is safe for concurrent use.
type Guard struct {
	opt     GuardOptions
	tokens  atomic.Pointer[[]digest]
	refused *prometheus.CounterVec

	mu    sync.Mutex
	tries *lru.Map[netip.Prefix, *rate.Limiter] // wrong tokens by address
}

// GuardOptions are the settings of a [Guard].
type GuardOptions struct {
	// Logger receives a line for each wrong token, at a bounded rate, with the address and never the token. Nil discards them.
	Logger *slog.Logger
	// Registerer receives the metrics; nil means that they are not exported.
	Registerer prometheus.Registerer
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
}

// The bounds on wrong tokens.
const (
	// MaxWrongTokens is how many of one address, by [connlimit.Network], are answered 401 at once, and per minute.
	MaxWrongTokens = 10
	// MaxWrongAddresses is how many addresses are told apart: those that sent one last.
	MaxWrongAddresses = 1024
)

// digest is a token of which only the hash is kept. Comparing hashes takes the same time whatever the
// length of what is presented, and whatever of it is right.
type digest struct {
	name     string
	role     Role
	payloads bool
	sum      [sha256.Size]byte
	sessions []byte // see sessionKey
}

// NewGuard returns a guard who knows these tokens. It panics when the metrics are registered already.
func NewGuard(tokens []Token, o GuardOptions) *Guard {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = loglimit.Bound(o.Logger)
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Guard{opt: o, tries: lru.New[netip.Prefix, *rate.Limiter](MaxWrongAddresses), refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hookonce_admin_refused_total", Help: "Requests to the admin listener whose sender may not make them, by reason.",
	}, []string{"reason"})}
	if o.Registerer != nil {
		o.Registerer.MustRegister(g.refused)
	}
	g.refused.WithLabelValues("slowed") // alerts see only what grows
	g.Reload(tokens)
	return g
}

// Reload makes these the tokens that the guard knows, from the next request on.
func (g *Guard) Reload(tokens []Token) {
	digests := make([]digest, 0, len(tokens))
	for _, t := range tokens {
		digests = append(digests, digest{t.Name, t.Role, t.Payloads, sha256.Sum256([]byte(t.Secret)), sessionKey(t.Secret)})
	}
	g.tokens.Store(&digests)
}

// Protect lets requests through to next whose sender may make them: reading takes any role, changing
// takes that of an operator.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return protect(next, g.admit, func(w http.ResponseWriter, _ *http.Request, refused *problem.Details) {
		if refused.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="hookonce"`)
		}
		refused.Write(w)
	})
}

// ProtectPages is [Guard.Protect] for what people look at: it knows them by the cookie of [Guard.Login] as well, and has refuse
// answer those who are not let in.
func (g *Guard) ProtectPages(next http.Handler, refuse func(http.ResponseWriter, *http.Request, *problem.Details)) http.Handler {
	return protect(next, g.admitPerson, refuse)
}

func protect(next http.Handler, admit func(*http.Request) (Visitor, *problem.Details), refuse func(http.ResponseWriter, *http.Request, *problem.Details)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor, refused := admit(r)
		if refused != nil {
			refuse(w, r, refused)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, visitor)))
	})
}

// Knows reports whether the sender of a request may look at everything. One who shows a token that is wrong has tried
// one, as with [Guard.Protect]; one who shows none has not.
func (g *Guard) Knows(r *http.Request) bool {
	if len(*g.tokens.Load()) > 0 && r.Header.Get("Authorization") == "" {
		return false
	}
	_, refused := g.admit(r)
	return refused == nil
}

// Login has the browser that sends a request known from now on, for [SessionTime], as the bearer of the token: by a cookie that
// every gateway with that token knows, until the token is removed. It refuses who does not know a token, as often as [Guard.Protect] does,
// and who sends one in the clear over a network.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request, token string) *problem.Details {
	encrypted, private := channel(r)
	tokens := *g.tokens.Load()
	switch who := bearer(tokens, strings.TrimSpace(token)); {
	case len(tokens) == 0:
		return admitLocal(r)
	case !private:
		g.count("plain")
		return forbidden("over plain HTTP whoever listens on the network could use what you send: set admin_tls, or come through a tunnel or a proxy with TLS on the gateway's machine")
	case who == nil:
		return g.wrong(r)
	default:
		name := plainCookie
		if encrypted {
			name = secureCookie
		}
		s := session{who.name, who.role, g.opt.Now().Add(SessionTime).Unix()}
		http.SetCookie(w, s.cookie(name, who.sessions))
		return nil
	}
}

// Logout has the browser forget what [Guard.Login] gave it.
func (g *Guard) Logout(w http.ResponseWriter) {
	http.SetCookie(w, cookie(secureCookie, "", 0))
	http.SetCookie(w, cookie(plainCookie, "", 0))
}

// admit returns who sends a request, or why it is refused.
func (g *Guard) admit(r *http.Request) (v Visitor, refused *problem.Details) {
	tokens := *g.tokens.Load()
	if len(tokens) == 0 {
		if refused = admitLocal(r); refused != nil {
			g.count("not_local")
		}
		return local, refused
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		g.count("no_token")
		return Visitor{}, unauthorized("this needs a token: send Authorization: Bearer and one of admin_tokens")
	}
	who := bearer(tokens, strings.TrimSpace(secret))
	if who == nil {
		return Visitor{}, g.wrong(r)
	}
	return Visitor{who.name, who.role, false, who.payloads}, g.may(who, r)
}

// admitPerson is admit for a browser, which may show a cookie instead of a token.
func (g *Guard) admitPerson(r *http.Request) (v Visitor, refused *problem.Details) {
	tokens := *g.tokens.Load()
	if len(tokens) == 0 || r.Header.Get("Authorization") != "" {
		return g.admit(r)
	}
	who := readSession(cookieOf(r), tokens, g.opt.Now())
	if who == nil {
		g.count("no_session")
		return Visitor{}, unauthorized("this needs a token: log in with one of admin_tokens, or send Authorization: Bearer")
	}
	return Visitor{who.name, who.role, true, who.payloads}, g.may(who, r)
}

// may refuses a change to whose role is to read. A look at a payload changes the audit log alone.
func (g *Guard) may(who *digest, r *http.Request) *problem.Details {
	if who.role == Operator || r.Method == http.MethodGet || r.Method == http.MethodHead || who.payloads && strings.HasSuffix(r.URL.Path, payloadPath) {
		return nil
	}
	g.count("role")
	if strings.HasSuffix(r.URL.Path, payloadPath) {
		return forbidden(noPayloads(who.name))
	}
	return forbidden("the token of " + who.name + " may only read; this needs the role operator")
}

func (g *Guard) count(reason string) { g.refused.WithLabelValues(reason).Inc() }

// wrong counts and logs a wrong token, and returns the answer. The address is that of the connection: what a header says of it
// could be chosen anew for each try.
func (g *Guard) wrong(r *http.Request) *problem.Details {
	answer, reason := unauthorized("this token is not known here"), "wrong_token"
	remote, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero address is one as well
	if !g.mayTry(connlimit.Network(remote.Addr())) {
		answer, reason = &problem.Details{Status: http.StatusTooManyRequests, Detail: "too many wrong tokens came from this address", RetryAfter: time.Minute / MaxWrongTokens}, "slowed"
	}
	g.count(reason)
	g.opt.Logger.LogAttrs(r.Context(), slog.LevelWarn, "api: a wrong admin token", slog.String("address", remote.Addr().String()), slog.Int("status", answer.Status))
	return answer
}

// mayTry reports whether an address has tries left.
func (g *Guard) mayTry(from netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	bucket, known := g.tries.Get(from)
	if !known {
		bucket = rate.NewLimiter(rate.Every(time.Minute/MaxWrongTokens), MaxWrongTokens)
		g.tries.Add(from, bucket)
	}
	return bucket.AllowN(g.opt.Now(), 1)
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
func admitLocal(r *http.Request) *problem.Details {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	switch {
	case err != nil || !remote.Addr().Unmap().IsLoopback():
		return forbidden("without admin_tokens in the configuration only this machine is answered")
	case !header.LoopbackHost(r.Host):
		return forbidden("without admin_tokens in the configuration requests must name a loopback address, such as 127.0.0.1, in Host")
	case header.Proxied(r):
		return forbidden("without admin_tokens in the configuration nothing is answered that came through a proxy, as a header or HTTP/1.0 shows: whoever reaches the proxy would be an operator. Behind any proxy set admin_tokens")
	case foreign(r):
		return forbidden("a page of another site may not ask this")
	}
	return nil
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
