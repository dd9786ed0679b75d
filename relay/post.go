package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// POST is [NewPOST] for addresses and options that are constants: it panics where NewPOST returns an
// error.
func POST(client *http.Client, address string, opts ...PostOption) Handler {
	h, err := NewPOST(client, address, opts...)
	if err != nil {
		panic(err)
	}
	return h
}

// NewPOST returns a handler that posts the effect's payload to an address, which begins with
// http:// or https://. Nil means a client of its own, with connections of its own that are made as
// [http.DefaultTransport] makes them: they are kept for the next posts, and given up when they went
// silent; where a program has put another kind of transport in that place, it is used as it is.
// A client of the program's keeps its connections: where several are dead, an attempt may fail, which
// counts as a try.
// Redirects are not followed: the address would not be the one that was configured. The timeout is
// the relay's.
//
// The request has Content-Type application/json unless [PostHeader] says otherwise;
// Idempotency-Key, the effect's key; Hookonce-Effect, its name; Hookonce-Source and Hookonce-Key,
// what asked for it, percent-encoded where a header could not carry it; Hookonce-Attempt, the
// attempt's number. A Go program that receives them with provider.Hookonce claims each effect by
// its Idempotency-Key.
//
// An answer of 2xx means done. 410 and the statuses of [PostPermanent] give the effect up. Everything else,
// and no answer, is a failure, and the effect is tried again, after the time of Retry-After if a 429 or 503
// asks for some, a day at most.
func NewPOST(client *http.Client, address string, opts ...PostOption) (Handler, error) {
	p, err := newPost(client, address, opts)
	if err != nil {
		return nil, err
	}
	return p.carryOut, nil
}

func newPost(client *http.Client, address string, opts []PostOption) (*post, error) {
	if _, err := outgoing.ParseAddress(address); err != nil {
		return nil, fmt.Errorf("relay: POST: %w", err)
	}
	leave := func() {} // others may wait for answers over the connections of a client that is not ours
	if client == nil {
		client = &http.Client{Transport: ownTransport()}
		if _, own := client.Transport.(*outgoing.Transport); own {
			leave = client.CloseIdleConnections
		}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p := &post{client: &own, leave: leave, address: address, header: http.Header{"Content-Type": {"application/json"}}, now: time.Now}
	for _, o := range opts {
		if err := o(p); err != nil {
			return nil, fmt.Errorf("relay: POST: %w", err)
		}
	}
	return p, nil
}

// maxIdle is how many connections are kept for the next posts: as many as the command relay may
// have under way. With fewer than are under way each further post would dial, and its port is not
// free again for a minute. What is not used is closed after a minute and a half.
const maxIdle = 1000

// ownTransport returns what carries the posts of one handler.
func ownTransport() http.RoundTripper {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	return outgoing.NewTransport(forPosts(shared).Clone)
}

// forPosts returns a transport that connects as another does now, and keeps what posts need.
func forPosts(t *http.Transport) *http.Transport {
	own := t.Clone()
	own.MaxIdleConns, own.MaxIdleConnsPerHost = maxIdle, maxIdle
	own.HTTP2 = outgoing.Pings()
	return own
}

// PostOption changes a default of [POST].
type PostOption func(*post) error

// PostHeader sets a header of the requests, such as Authorization. Those that POST sets itself win. It is an error if HTTP
// sets the header, such as Host, or cannot carry the value, such as one with the line break at the end of a file.
func PostHeader(name, value string) PostOption {
	return func(p *post) error {
		if err := header.CheckSent(name); err != nil {
			return fmt.Errorf("PostHeader: %w", err)
		}
		if !header.ValidValue(value) {
			return fmt.Errorf("PostHeader: the value of %s has control characters, which a header cannot carry: is there a line break at its end?", http.CanonicalHeaderKey(name))
		}
		p.header.Set(name, value)
		return nil
	}
}

// PostSecrets signs the requests as Standard Webhooks describe it, once with each secret, and with Hookonce-Signature
// what their Idempotency-Key and other Hookonce- headers say, as the gateway signs its deliveries. A secret that
// begins with whsec_ is base64 after it; any other is its bytes. The header webhook-id is the same for every
// attempt.
func PostSecrets(secrets ...string) PostOption {
	return func(p *post) (err error) {
		p.keys, err = outgoing.Keys(secrets)
		return err
	}
}

// PostHTTPSignature signs the requests with an HTTP message signature (RFC 9421), as the gateway signs what goes to a
// destination with http_signature: see provider.HookonceHTTP for what it covers. The key is a private key in PEM, whose kind
// says which algorithm it is for (Ed25519, ECDSA on P-256 or P-384, RSA of at least 2048 bits with PSS), or a secret that
// the receiver shares, byte for byte (hmac-sha256). keyID is the parameter keyid, by which receivers find their key. Each
// use adds a signature, up to four, so that a key can be replaced; [PostSecrets] may stand beside it.
func PostHTTPSignature(keyID, key string) PostOption {
	return func(p *post) error {
		k, err := outgoing.NewHTTPKey(keyID, key)
		if err != nil {
			return err
		}
		if p.httpKeys = append(p.httpKeys, k); len(p.httpKeys) > outgoing.MaxHTTPKeys {
			return fmt.Errorf("at most %d keys sign a request", outgoing.MaxHTTPKeys)
		}
		return outgoing.CheckHTTPAddress(p.address)
	}
}

// PostPermanent sets the statuses, from 300 to 499, with which the effect is given up at once, besides 410. 408, 425
// and 429 cannot be among them, as no 5xx can: they say that the other side cannot now, which passes.
func PostPermanent(statuses ...int) PostOption {
	return func(p *post) error {
		for _, s := range statuses {
			if err := retry.CheckPermanent(s); err != nil {
				return err
			}
		}
		p.permanent = statuses
		return nil
	}
}

// PostClock sets the clock of signatures. Default [time.Now].
func PostClock(now func() time.Time) PostOption {
	return func(p *post) error {
		p.now = now
		if now == nil {
			return errors.New("PostClock does not take nil")
		}
		return nil
	}
}

type post struct {
	client    *http.Client
	leave     func() // the connections that the client keeps: see [outgoing.Send]
	address   string
	header    http.Header
	keys      [][]byte
	httpKeys  []outgoing.HTTPKey
	permanent []int
	now       func() time.Time
}

func (p *post) carryOut(ctx context.Context, e hookonce.QueuedEffect) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address, bytes.NewReader(e.Payload))
	if err != nil {
		return err
	}
	if req.Header, err = p.headers(e); err != nil {
		return err
	}
	start := time.Now()
	response, err := outgoing.Send(req, p.client.Do, p.leave)
	if err != nil {
		return unanswered(ctx, p.now(), err, time.Since(start))
	}
	outgoing.NewAnswer(response, cancel).Drain()
	now := p.now()
	v := retry.Judge(response, p.permanent, now)
	return follow(v, now, errors.New(v.Reason))
}

// follow returns what has the relay do as the verdict says of an attempt that ended now and failed so.
func follow(v retry.Judgement, now time.Time, failed error) error {
	switch v.Result {
	case retry.Done:
		return nil
	case retry.Dead:
		return hookonce.Permanent(failed)
	}
	if wait := v.Due(now, 0).Sub(now); wait > 0 {
		return hookonce.RetryAfter(wait, failed)
	}
	return failed
}

// unanswered returns the error of a request that got no answer. Its text, which is stored and logged, repeats
// neither the address, which may hold a secret, nor what the other side wrote.
func unanswered(ctx context.Context, now time.Time, err error, took time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v := retry.JudgeError(err, took.Round(time.Millisecond))
	return follow(v, now, &failure{v.Reason, err})
}

// failure is an error with another text.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

func (p *post) headers(e hookonce.QueuedEffect) (http.Header, error) {
	h := p.header.Clone()
	key := e.IdempotencyKey()
	h.Set(header.IdempotencyKey, key)
	h.Set(header.HookonceEffect, header.Safe(e.Name))
	h.Set(header.HookonceSource, header.Safe(e.Source))
	h.Set(header.HookonceAttempt, strconv.FormatInt(e.Token, 10))
	if e.Key != "" {
		h.Set(header.HookonceKey, header.Safe(e.Key))
	}
	if len(p.keys) > 0 {
		outgoing.Sign(h, p.keys, "msg_"+key, p.now(), e.Payload)
	}
	if len(p.httpKeys) > 0 {
		if err := outgoing.SignHTTP(h, p.httpKeys, http.MethodPost, p.address, p.now(), e.Payload); err != nil {
			return nil, fmt.Errorf("the request could not be signed: %w", err)
		}
	}
	return h, nil
}
