package deliver

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/passing"
)

// newRequest is the POST of one attempt: what the provider sent, as it is passed on, and what hookonce knows about
// the event.
//
// The transport sends the request again by itself when a kept connection turns out to be closed
// before any of the answer arrived, which it may because of the Idempotency-Key. Two requests can
// then bear the same Hookonce-Attempt.
func newRequest(ctx context.Context, d *destination, w *journal.Work, sent *hookonce.Request) *http.Request {
	body := &reader{}
	body.Reset(sent.Body)
	r := &http.Request{
		Method:        http.MethodPost,
		URL:           d.at(sent.URL),
		Host:          d.url.Host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header(d, w, sent),
		Body:          body,
		ContentLength: int64(len(sent.Body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(sent.Body)), nil },
	}
	if len(sent.Body) == 0 {
		r.Body = http.NoBody
	}
	return r.WithContext(ctx)
}

// reader is a body that needs no closing.
type reader struct{ bytes.Reader }

func (*reader) Close() error { return nil }

// passed is the request of the provider as it is passed on now, before it is signed anew.
func (d *destination) passed(w *journal.Work, now time.Time) *hookonce.Request {
	filter := passing.Filter{Rule: d.rules[w.Source], Choice: d.choice}
	if s := d.signers[w.Source]; s != nil && d.choice.Chooses() {
		filter.Signed = s.Carries
	}
	return &hookonce.Request{Method: http.MethodPost, URL: d.address, Header: decodeHeader(w.Header, &filter), Body: w.Body, Now: now}
}

// at returns where a request goes: the address of the destination, unless signing has put something into its query.
func (d *destination) at(address string) *url.URL {
	if _, query, _ := strings.Cut(address, "?"); query != d.url.RawQuery {
		u := *d.url
		u.RawQuery = query
		return &u
	}
	return d.url
}

// header is that of the provider with ours on top.
func header(d *destination, w *journal.Work, sent *hookonce.Request) http.Header {
	h := own{sent.Header, make([]string, 0, ownHeaders)}
	key := idempotencyKey(w)
	h.set(outgoing.IdempotencyKeyHeader, key)
	h.event(w)
	if w.Stale && d.stale != StaleDeliver {
		h.set(outgoing.StaleHeader, "true")
	}
	setTrace(h.Header, key)
	if d.authorization != "" {
		h.set("Authorization", d.authorization)
	}
	maps.Copy(h.Header, d.header)
	if _, ok := h.Header["User-Agent"]; !ok {
		h.set("User-Agent", "hookonce")
	}
	if len(d.secrets) > 0 {
		id := messageID(key, d.name)
		timestamp, signature := outgoing.Sign(d.secrets, id, sent.Now, sent.Body)
		h.set(outgoing.MessageIDHeader, id)
		h.set(outgoing.TimestampHeader, timestamp)
		h.set(outgoing.SignatureHeader, signature)
		h.set(outgoing.FactsSignatureHeader, outgoing.SignFacts(d.secrets, id, timestamp, h.Header))
	}
	return h.Header
}

// own sets headers of one value each, with one allocation for all of them.
type own struct {
	http.Header
	values []string
}

func (h *own) set(name, value string) {
	h.values = append(h.values, value)
	h.Header[name] = h.values[len(h.values)-1 : len(h.values) : len(h.values)]
}

// event sets what is known about the event. The facts that are kept with it are there already. The key of what
// coalesces is not told: events come and go under it, and who took it for this one's would lose the next.
func (h *own) event(w *journal.Work) {
	h.set(outgoing.SourceHeader, outgoing.HeaderSafe(w.Source))
	if w.Token > 0 {
		h.set(outgoing.AttemptHeader, strconv.FormatInt(w.Token, 10))
	}
	if w.Unprotected {
		h.set(outgoing.UnprotectedHeader, "true")
	}
	h.set(outgoing.FirstSeenHeader, w.ReceivedAt.UTC().Format(outgoing.FirstSeenForm))
	if w.Key != "" && !journal.Coalesces(w.Key) {
		h.set(outgoing.KeyHeader, outgoing.HeaderSafe(w.Key))
	}
	if w.Type != "" {
		h.set(outgoing.TypeHeader, outgoing.HeaderSafe(w.Type))
	}
	if w.Resource != "" {
		h.set(outgoing.ScopeHeader, outgoing.HeaderSafe(w.Resource))
	}
	if w.Twin != "" {
		h.set(outgoing.TwinOfHeader, outgoing.HeaderSafe(w.Twin))
	}
	if w.Forced {
		h.set(outgoing.ForcedHeader, "true")
	}
}
