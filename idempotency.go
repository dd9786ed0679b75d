package hookonce

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/hookonce/hookonce/internal/callgroup"
	"github.com/hookonce/hookonce/internal/problem"
	"github.com/hookonce/hookonce/internal/recorder"
)

// idempotency is what [Idempotent] and [IdempotentLease] have in common: which request is which, who waits
// for whom, and what is answered. How a request is carried out once is theirs.
type idempotency struct {
	settings
	responses ResponseStore
	// attempt claims a call and carries it out, or says what came of it earlier. It outlives ctx.
	attempt func(ctx context.Context, c *call) result
	// next gets, as they are, the requests that are not claimed: those with safe methods and those without a
	// key. Nil: the former are refused, and the latter attempted.
	next  http.Handler
	calls callgroup.Group[Ref, result]
}

// call is one request that is to have its effect once.
type call struct {
	Ref           // without a key if the request has none
	sent   string // the key as the client sent it, without its scope
	kind   string // for people
	digest []byte // of what the request says
	body   []byte
	*http.Request
}

// claim is what to ask the store for. Under a lease it is bound to what the request says, until it is known
// that nothing came of it.
func (c *call) claim(lease time.Duration) ClaimRequest {
	return ClaimRequest{Ref: c.Ref, Type: c.kind, Digest: c.digest, Lease: lease, Pin: lease != 0}
}

// readable returns the request for the handler: its body can be read from the beginning, and ctx is its
// context.
func (c *call) readable(ctx context.Context) *http.Request {
	r := c.WithContext(ctx)
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding = int64(len(c.body)), nil
	return r
}

// ServeHTTP answers one request.
func (h *idempotency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, refusal := h.open(w, r)
	switch {
	case refusal != nil:
		refusal = h.occurrence(r, refusal)
		h.reject(r.Context(), refusal)
		h.refuse(w, refusal)
	case c == nil:
		h.next.ServeHTTP(w, r)
	default:
		h.serve(w, c)
	}
}

// open returns the call that the request makes, or why it is refused, or neither if it is for next.
func (h *idempotency) open(w http.ResponseWriter, r *http.Request) (*call, *problem.Details) {
	if safe(r.Method) {
		return nil, h.unclaimed()
	}
	ref, refusal := h.identify(r)
	if refusal != nil || ref.Key == "" && h.next != nil {
		return nil, refusal
	}
	body, refusal := h.readBody(w, r)
	if refusal != nil {
		return nil, refusal
	}
	c := &call{Ref: ref, kind: cmp.Or(r.Pattern, r.Method), body: body, Request: r}
	c.sent, _ = parseKey(r.Header[keyHeader], h.strictKey, h.maxKey) // refused before, if it is malformed
	c.digest = fingerprint(c.readable(r.Context()), h.fingerprint, body, h.content)
	return c, nil
}

// safe reports whether requests with that method have no effect by their definition.
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect, "":
		return true
	}
	return false
}

// unclaimed returns the refusal of requests with safe methods, if they are refused.
func (h *idempotency) unclaimed() *problem.Details {
	if h.next != nil {
		return nil
	}
	return &problem.Details{Status: http.StatusMethodNotAllowed, Type: "method-not-allowed", Detail: "this address takes requests that change something, with POST, PUT, PATCH or DELETE"}
}

// identify finds out under which key the request is claimed.
func (h *idempotency) identify(r *http.Request) (Ref, *problem.Details) {
	ref := Ref{Source: h.source}
	lines := r.Header[keyHeader]
	if len(lines) == 0 {
		if h.optionalKey {
			return ref, nil
		}
		return ref, keyMissing()
	}
	key, err := parseKey(lines, h.strictKey, h.maxKey)
	if err != nil {
		return ref, keyMalformed(err)
	}
	scope, refusal := h.scopeOf(r)
	ref.Key = scopedKey(scope, key)
	return ref, refusal
}

// scopeOf asks whose request it is. A caller that nobody knows is refused: it must share no key with
// another.
func (h *idempotency) scopeOf(r *http.Request) (string, *problem.Details) {
	if h.unscoped {
		return "", nil
	}
	scope, err := h.scope(r)
	delay, retry := RetryDelay(err)
	switch {
	case retry:
		h.log.ErrorContext(r.Context(), "the scope of a request could not be told", "source", h.source, "error", err)
		return "", unavailable("it cannot be told now who sends the request", cmp.Or(max(delay, 0), defaultRetry))
	case err != nil || scope == "":
		return "", callerUnknown()
	}
	return scope, nil
}

// serve carries a call out, or finds out what came of it, and answers.
func (h *idempotency) serve(w http.ResponseWriter, c *call) {
	start := h.now()
	res := h.once(c.Context(), c)
	if res.problem != nil {
		res.problem = h.occurrence(c.Request, res.problem)
	}
	h.report(c, res, h.now().Sub(start))
	switch {
	case res.aborted:
		panic(http.ErrAbortHandler)
	case res.response == nil:
		h.refuse(w, res.problem)
		return
	case res.verdict == Duplicate:
		w.Header().Set(recorder.Replayed, "true")
	}
	(*recorder.Answer)(res.response).Send(w)
}

// refuse answers with p.
func (h *idempotency) refuse(w http.ResponseWriter, p *problem.Details) {
	if p.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", "POST, PUT, PATCH, DELETE")
	}
	p.Write(w)
}
