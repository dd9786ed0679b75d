package hookonce

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Transport returns a RoundTripper that gives POST, PATCH, PUT and DELETE requests an Idempotency-Key, so
// that whoever answers them can tell a repeated call from a new one. The key is the [EffectKey] of the
// work in the request's context and the call's step: when the work runs again the same call has the same
// key, and another event never has it. So build requests with the context that the handler got:
//
//	client := &http.Client{Transport: hookonce.Transport(nil)}
//	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
//
// A request stays as it is when it has the header, whatever its value, and when its context has no work,
// or work without a key: no key is ever random, and none is one that came in.
//
// The step is that of [WithStep]. Without one it is made of the method, host and path, and of a number
// that counts the calls to that address in this attempt which differ in query or body. So the same call
// made again, by a client that retries, has the same key, and a call with something else to say has the
// next one. To compare, the body is read once more, through GetBody; one that has no GetBody is a call of
// its own. Give a step by hand, then, to calls that are alike on purpose, to calls to one address at the
// same time, whose order is chance, and to calls that are not always made, or not always in the same
// order. A redirect is another address.
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
// one call: two calls with the same step are the same call. The names are the caller's; changing one means
// that work which is tried again after the change repeats the call under another key. The innermost name
// counts, and an empty one is none.
func WithStep(ctx context.Context, step string) context.Context {
	return context.WithValue(ctx, stepKey{}, step)
}

type transport struct{ base http.RoundTripper }

const keyHeader = "Idempotency-Key"

// RoundTrip sends the request, or a copy of it with a key.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := workFrom(req.Context())
	if w == nil || w.ref.Source == "" || w.ref.Key == "" || !mutates(req.Method) || hasKey(req.Header) {
		return t.base.RoundTrip(req)
	}
	step, err := w.step(req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	keyed := req.WithContext(req.Context())
	keyed.Header = req.Header.Clone()
	if keyed.Header == nil {
		keyed.Header = http.Header{}
	}
	keyed.Header.Set(keyHeader, EffectKey(w.ref, step))
	return t.base.RoundTrip(keyed)
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

// hasKey reports whether the request names a key, in whatever spelling.
func hasKey(h http.Header) bool {
	for name := range h {
		if strings.EqualFold(name, keyHeader) {
			return true
		}
	}
	return false
}

// step names the call that req makes.
func (w *work) step(req *http.Request) (string, error) {
	if step, _ := req.Context().Value(stepKey{}).(string); step != "" {
		return step, nil
	}
	b, err := bodyOf(req)
	if err != nil {
		return "", err
	}
	host := strings.ToLower(cmp.Or(req.Host, req.URL.Host))
	address := JoinKey(req.Method, cmp.Or(host, "-"), cmp.Or(req.URL.EscapedPath(), "/"))
	return JoinKey(address, strconv.Itoa(w.number(address, b))), nil
}

// body is what tells calls to one address apart.
type body struct {
	sum   [sha256.Size]byte // over query and body
	known bool              // false if the body could be read only once
}

// bodyOf reads the body in a copy of its own.
func bodyOf(req *http.Request) (body, error) {
	hash := sha256.New()
	io.WriteString(hash, strconv.Itoa(len(req.URL.RawQuery))+":"+req.URL.RawQuery)
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return body{}, nil
		}
		r, err := req.GetBody()
		if err != nil {
			return body{}, fmt.Errorf("hookonce: Transport: the body can not be read twice: %w", err)
		}
		defer r.Close()
		if _, err := io.Copy(hash, r); err != nil {
			return body{}, fmt.Errorf("hookonce: Transport: reading the body: %w", err)
		}
	}
	return body{sum: [sha256.Size]byte(hash.Sum(nil)), known: true}, nil
}

// number returns which of the different calls to an address this is, from 1.
func (w *work) number(address string, b body) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.calls[address]
	for i := range seen {
		if b.known && seen[i] == b {
			return i + 1
		}
	}
	if w.calls == nil {
		w.calls = map[string][]body{}
	}
	w.calls[address] = append(seen, b)
	return len(seen) + 1
}
