package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
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

// NewPOST returns a handler that posts the effect's payload to an address, which begins with http:// or
// https://. Nil means a client of its own. Redirects are not followed: the address would not be the one
// that was configured. The timeout is the relay's.
//
// The request has Content-Type application/json unless [PostHeader] says otherwise; Idempotency-Key, the
// effect's key; Hookonce-Effect, its name; Hookonce-Source and Hookonce-Key, what asked for it, percent-encoded
// where a header could not carry it; Hookonce-Attempt, the attempt's number.
//
// An answer of 2xx means done. 410 and the statuses of [PostPermanent] give the effect up. Everything else,
// and no answer, is a failure, and the effect is tried again, after the time of Retry-After if a 429 or 503
// asks for some, a day at most.
func NewPOST(client *http.Client, address string, opts ...PostOption) (Handler, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("relay: POST: the address must begin with http:// or https:// and name a host") // and may hold a secret
	}
	if client == nil {
		client = &http.Client{}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p := &post{client: &own, address: address, header: http.Header{"Content-Type": {"application/json"}}, now: time.Now}
	for _, o := range opts {
		if err := o(p); err != nil {
			return nil, fmt.Errorf("relay: POST: %w", err)
		}
	}
	return p.carryOut, nil
}

// PostOption changes a default of [POST].
type PostOption func(*post) error

// PostHeader sets a header of the requests, such as Authorization. Those that POST sets itself win.
func PostHeader(name, value string) PostOption {
	return func(p *post) error {
		p.header.Set(name, value)
		return nil
	}
}

// PostSecrets signs the requests as Standard Webhooks describe it, once with each secret. A secret that
// begins with whsec_ is base64 after it; any other is its bytes. The header webhook-id is the same for every
// attempt.
func PostSecrets(secrets ...string) PostOption {
	return func(p *post) (err error) {
		p.keys, err = outgoing.Keys(secrets)
		return err
	}
}

// PostPermanent sets the statuses, from 300 to 599, with which the effect is given up at once, besides 410.
func PostPermanent(statuses ...int) PostOption {
	return func(p *post) error {
		for _, s := range statuses {
			if s < 300 || s > 599 {
				return fmt.Errorf("status %d cannot be permanent: write one between 300 and 599", s)
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
	address   string
	header    http.Header
	keys      [][]byte
	permanent []int
	now       func() time.Time
}

// maxDrained is how much of an answer is read so that its connection can be used again.
const maxDrained = 16 << 10

func (p *post) carryOut(ctx context.Context, e hookonce.QueuedEffect) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address, bytes.NewReader(e.Payload))
	if err != nil {
		return err
	}
	req.Header = p.headers(e)
	answer, err := p.client.Do(req)
	var where *url.Error // its text repeats the address, which may hold a secret
	if errors.As(err, &where) {
		err = where.Err
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxDrained) // the status alone decides
	return p.judge(answer)
}

func (p *post) headers(e hookonce.QueuedEffect) http.Header {
	h := p.header.Clone()
	key := e.IdempotencyKey()
	h.Set("Idempotency-Key", key)
	h.Set("Hookonce-Effect", header.Safe(e.Name))
	h.Set("Hookonce-Source", header.Safe(e.Source))
	h.Set("Hookonce-Attempt", strconv.FormatInt(e.Token, 10))
	if e.Key != "" {
		h.Set("Hookonce-Key", header.Safe(e.Key))
	}
	if len(p.keys) > 0 {
		id := "msg_" + key
		timestamp, signature := outgoing.Sign(p.keys, id, p.now(), e.Payload)
		h.Set(header.WebhookID, id)
		h.Set(header.WebhookTimestamp, timestamp)
		h.Set(header.WebhookSignature, signature)
	}
	return h
}

// judge turns the answer's status into what it means for the effect.
func (p *post) judge(answer *http.Response) error {
	if answer.StatusCode/100 == 2 {
		return nil
	}
	err := fmt.Errorf("answered %d", answer.StatusCode)
	if remark := outgoing.Remark(answer); remark != "" {
		err = fmt.Errorf("answered %d: %s", answer.StatusCode, remark)
	}
	if answer.StatusCode == http.StatusGone || slices.Contains(p.permanent, answer.StatusCode) {
		return hookonce.Permanent(err)
	}
	if after := outgoing.RetryAfter(answer, p.now()); after > 0 {
		return hookonce.RetryAfter(after, err)
	}
	return err
}
