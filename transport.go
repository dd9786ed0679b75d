package hookonce

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// Transport returns a RoundTripper that gives POST, PATCH, PUT and DELETE requests an Idempotency-Key, so
// that the system which answers them can tell a repeated call from a new one. When the work runs again, in any process,
// the call has the same key; other work never has it. So build requests with the context that the handler got:
//
//	client := &http.Client{Transport: hookonce.Transport(nil)}
//	ctx = hookonce.WithStep(ctx, "charge")
//	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
//
// Ask first whether the call has to be made in the middle of the handler: an effect of the outbox ([Enqueue])
// is made after the commit, and never for work that was rolled back.
//
// With [WithStep] the key is the [EffectKey] of the work in the context and the step, whatever the request says: it
// replaces a header Idempotency-Key. That is the form to rely on: name each call. It is the only one for a client that
// draws a key at random for each call, as stripe-go does where the params have none: without a step that key is sent, and
// a handler that runs again charges again. Its calls have the context that its method takes, or else that of their
// params (params.Context).
//
// Without a step, the key is derived from method, host and path, which is enough for a handler that makes one
// call to an address. The same call again is a retry and has the same key. A call to an address that was called
// before in the attempt and that differs in query, body or header is refused with [ErrUnnamedCall]: nobody
// can tell whether it is another call, or a retry by a client that writes the time into what it sends. So is a
// second call whose body cannot be read again (GetBody is nil). The header fields Date, Traceparent,
// Tracestate, Baggage, X-Request-Id, User-Agent and Referer do not count, because clients change them between
// retries and redirects; others do, also Authorization and Cookie, which may say for whom the call is made. Nothing was
// sent then, and the next attempt may go well: the key of the first call is the same. Redirects are further
// calls.
//
// A request without a step stays as it is when it has the header Idempotency-Key: nobody can tell whether a client drew the
// key for this call, or the program keeps it. So does every request whose context has no work, or work without a
// key: Transport itself draws none at random. But the key of the request that the work answers ([Idempotent],
// [IdempotentLease]) is replaced: a proxy, and a handler that hands on the header that it got, would otherwise send
// what any client wrote, and two callers with the key "1" would be one there. Every request with one
// of the four methods pins the attempt that it is part of, with a key or without: see [PinRequest].
//
// Nil means [http.DefaultTransport]. A request with a key is one that net/http sends again by itself when
// a kept connection breaks.
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base}
}

// WithStep names the step of the work that requests with the context belong to, for [Transport]. A step is
// one call: two calls with the same step have the same key, whatever they say, and whatever keys they came with. So the
// context is for one call and its retries, and not for all calls of a handler: whoever answers them would take the
// second for the first. The names are the caller's, and must be the same whenever the work runs again: name what the
// call is for ("charge", "refund of item 7"), not how often it was tried. Changing one means that work which is tried
// again after the change repeats the call under another key. The innermost name counts, and an empty one is none.
func WithStep(ctx context.Context, step string) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

type transport struct{ base http.RoundTripper }

// RoundTrip sends the request, or a copy of it with a key.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !mutates(req.Method) {
		return t.base.RoundTrip(req)
	}
	key, err := outboundKey(req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	reach(req)
	if key == "" {
		return t.base.RoundTrip(req)
	}
	keyed := req.WithContext(req.Context())
	keyed.Header = req.Header.Clone()
	if keyed.Header == nil {
		keyed.Header = http.Header{}
	}
	for name := range keyed.Header {
		if strings.EqualFold(name, header.IdempotencyKey) {
			delete(keyed.Header, name)
		}
	}
	keyed.Header.Set(header.IdempotencyKey, key)
	return t.base.RoundTrip(keyed)
}

// reach pins the attempt that the call is part of.
func reach(req *http.Request) {
	PinRequest(req.Context())
	if p := pinFrom(req.Context()); p != nil && p.warn != nil {
		p.warn(req.Context(), hostOf(req))
	}
}

// CloseIdleConnections hands on what [http.Client.CloseIdleConnections] asks for.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func mutates(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// hasKey reports whether the request names a key of its own, in whatever spelling: none is the one that came in.
func hasKey(req *http.Request) bool {
	for name, lines := range req.Header {
		if strings.EqualFold(name, header.IdempotencyKey) && !cameIn(req.Context(), lines) {
			return true
		}
	}
	return false
}

// cameIn reports whether the key is the one of a request that is being answered.
func cameIn(ctx context.Context, lines []string) bool {
	key, err := parseKey(lines, false, math.MaxInt)
	if err != nil {
		return false
	}
	for p := pinFrom(ctx); p != nil; p = pinFrom(p.Context) {
		if p.key == key {
			return true
		}
	}
	return false
}

// outboundKey returns the key for the request; empty if it gets none.
func outboundKey(req *http.Request) (string, error) {
	w := workFrom(req.Context())
	if w == nil || w.ref.Source == "" || w.ref.Key == "" {
		return "", nil
	}
	if step, _ := req.Context().Value(stepKey{}).(string); step != "" {
		return EffectKey(w.ref, step), nil // and not what the client made up
	}
	if hasKey(req) {
		return "", nil
	}
	step, err := unnamed(w, req)
	if err != nil {
		return "", err
	}
	return EffectKey(w.ref, step), nil
}

// unnamed returns the step of a call that has no name.
func unnamed(w *work, req *http.Request) (string, error) {
	path := cmp.Or(req.URL.EscapedPath(), "/")
	address := JoinKey(req.Method, cmp.Or(hostOf(req), "-"), path)
	how, err := w.calls.Compare(address, req)
	if err != nil {
		return "", fmt.Errorf("hookonce: Transport: %w", err)
	}
	if how != "" {
		return "", fmt.Errorf("hookonce: Transport: the second %s %s%s of this attempt %s: %w: name each call to the address with WithStep, a call and its retries alike",
			req.Method, hostOf(req), path, how, ErrUnnamedCall)
	}
	return address, nil
}

func hostOf(req *http.Request) string { return strings.ToLower(cmp.Or(req.Host, req.URL.Host)) }
