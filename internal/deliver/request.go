package deliver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// newRequest is the POST of one attempt: what the provider sent, as it is passed on, and what hookonce knows about
// the event.
//
// The transport sends the request again by itself when a kept connection turns out to be closed
// before any of the answer arrived, which it may because of the Idempotency-Key. Three requests can
// then bear the same Hookonce-Attempt.
func newRequest(ctx context.Context, d *destination, w *journal.Work, sent *hookonce.Request) (*http.Request, error) {
	body := &reader{}
	body.Reset(sent.Body)
	r := &http.Request{
		Method:        http.MethodPost,
		URL:           d.at(sent.URL),
		Host:          d.url.Host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        requestHeader(d, w, sent),
		Body:          body,
		ContentLength: int64(len(sent.Body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(sent.Body)), nil },
	}
	if len(sent.Body) == 0 {
		r.Body = http.NoBody
	}
	if len(d.HTTPKeys) > 0 {
		if err := outgoing.SignHTTP(r.Header, d.HTTPKeys, r.Method, d.signed(r.URL), sent.Now, sent.Body); err != nil {
			return nil, &retry.Fault{Kind: retry.Unspecified, Text: "the delivery could not be signed: " + err.Error(), Ours: true}
		}
	}
	return r.WithContext(ctx), nil
}

// reader is a body that needs no closing.
type reader struct{ bytes.Reader }

func (*reader) Close() error { return nil }

// passed is the request of the provider as it is passed on now, before it is signed anew.
func (d *destination) passed(w *journal.Work, now time.Time) *hookonce.Request {
	filter := header.Filter{Rule: d.Rules[w.Source], Choice: d.choice}
	if s := d.Signers[w.Source]; s != nil && d.choice.Chooses() {
		filter.Signed = s.Carries
	}
	return &hookonce.Request{Method: http.MethodPost, URL: d.address, Header: filter.Decode(w.Header, ownHeaders), Body: w.Body, Now: now}
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

// requestHeader is that of the provider with ours on top.
func requestHeader(d *destination, w *journal.Work, sent *hookonce.Request) http.Header {
	h := own{sent.Header, make([]string, 0, ownHeaders)}
	key := idempotencyKey(w)
	h.set(header.IdempotencyKey, key)
	h.event(w)
	if w.Stale && d.Stale != StaleDeliver {
		h.set(header.HookonceStale, "true")
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
		outgoing.Sign(h.Header, d.secrets, messageID(key, d.name), sent.Now, sent.Body)
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
	h.set(header.HookonceSource, header.Safe(w.Source))
	if w.EventID != 0 && !w.Unprotected { // what goes past the store may get another number there
		h.set(header.HookonceEventID, strconv.FormatInt(w.EventID, 10))
	}
	if w.Token > 0 {
		h.set(header.HookonceAttempt, strconv.FormatInt(w.Token, 10))
	}
	if w.Unprotected {
		h.set(header.HookonceUnprotected, "true")
	}
	h.set(header.HookonceFirstSeen, w.ReceivedAt.UTC().Format(header.FirstSeenForm))
	if w.Key != "" && !journal.Coalesces(w.Key) {
		h.set(header.HookonceKey, header.Safe(w.Key))
	}
	if w.Type != "" {
		h.set(header.HookonceEventType, header.Safe(w.Type))
	}
	if w.Resource != "" {
		h.set(header.HookonceScope, header.Safe(w.Resource))
	}
	if w.LogicalDuplicateKey != "" {
		h.set(header.HookonceLogicalDuplicateOf, header.Safe(w.LogicalDuplicateKey))
	}
	if w.Forced {
		h.set(header.HookonceForced, "true")
	}
}

// maxIdempotencyKey is the length, in bytes, that receivers commonly store.
const maxIdempotencyKey = 255

// idempotencyKey is the same for every attempt at an event and for no other event:
//
//	billing:evt_1              a key in its source
//	billing#81985529216486895  an event without a key, or with one that others take over, by its
//	                           identifier in the journal
//	#5f2b...                   the SHA-256 of one of these that is longer than 255 bytes
//
// The source has neither : nor # in this form, so the first of them tells which it is.
func idempotencyKey(w *journal.Work) string {
	source := header.Escape(w.Source, ":#")
	var key string
	if w.Key != "" && !journal.Coalesces(w.Key) {
		key = source + ":" + header.Safe(w.Key)
	} else {
		key = source + "#" + strconv.FormatInt(w.EventID, 10)
	}
	if len(key) > maxIdempotencyKey {
		sum := sha256.Sum256([]byte(key))
		key = "#" + hex.EncodeToString(sum[:])
	}
	return key
}

// messageID names a message: an event on its way to one destination. It is the same for every attempt,
// in every process, because it is made of the Idempotency-Key.
func messageID(idempotencyKey, destination string) string {
	sum := sha256.Sum256([]byte(idempotencyKey + " " + destination)) // a key has no space
	return "msg_" + hex.EncodeToString(sum[:16])
}

// ownHeaders is how many headers of ours most events have.
const ownHeaders = 11

const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"
)

// setTrace leaves the sender's trace context (https://www.w3.org/TR/trace-context/) in h if it is valid,
// and begins a trace otherwise. All attempts at an event are in the same trace, each with a parent of its
// own. It is marked as sampled, or an application that leaves that to its callers would record none.
func setTrace(h http.Header, idempotencyKey string) {
	if sent := h[traceparent]; len(sent) == 1 && validTrace(sent[0]) {
		return
	}
	delete(h, tracestate)
	sum := sha256.Sum256([]byte(idempotencyKey))
	parent := rand.Uint64() | 1 // zero is not valid
	var b [len("00-") + 32 + 1 + 16 + len("-01")]byte
	text := append(b[:0], "00-"...)
	text = hex.AppendEncode(text, sum[:16])
	text = append(text, '-')
	for shift := 60; shift >= 0; shift -= 4 {
		text = append(text, "0123456789abcdef"[parent>>shift&15])
	}
	h[traceparent] = []string{string(append(text, "-01"...))}
}

// validTrace reports whether s is a traceparent: of version 00, or of a later one that begins like it.
func validTrace(s string) bool {
	const length = 55
	if len(s) < length || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:length]
	switch {
	case version == "ff", version == "00" && len(s) != length, len(s) > length && s[length] != '-':
		return false
	case !lowerHex(version) || !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags):
		return false
	}
	return strings.Trim(trace, "0") != "" && strings.Trim(parent, "0") != ""
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
