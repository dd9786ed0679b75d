package deliver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/hookonce/hookonce/internal/journal"
)

// newRequest is the POST of one attempt: the body and headers as the provider sent them, so that the
// application can still check the provider's signature, and what hookonce knows about the event.
//
// The transport sends the request again by itself when a kept connection turns out to be closed
// before any of the answer arrived, which it may because of the Idempotency-Key. Two requests can
// then bear the same Hookonce-Attempt.
func newRequest(ctx context.Context, d *destination, w *journal.Work) *http.Request {
	body := &reader{}
	body.Reset(w.Body)
	r := &http.Request{
		Method:        http.MethodPost,
		URL:           d.url,
		Host:          d.url.Host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header(d, w),
		Body:          body,
		ContentLength: int64(len(w.Body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(w.Body)), nil },
	}
	if len(w.Body) == 0 {
		r.Body = http.NoBody
	}
	return r.WithContext(ctx)
}

// reader is a body that needs no closing.
type reader struct{ bytes.Reader }

func (*reader) Close() error { return nil }

// header is that of the provider with ours on top.
func header(d *destination, w *journal.Work) http.Header {
	h := decodeHeader(w.Header)
	own := make([]string, 0, 7)
	set := func(name, value string) {
		own = append(own, value)
		h[name] = own[len(own)-1 : len(own) : len(own)]
	}
	set("Idempotency-Key", idempotencyKey(w))
	set("Hookonce-Source", headerSafe(w.Source))
	if w.Key != "" {
		set("Hookonce-Key", headerSafe(w.Key))
	}
	if w.Type != "" {
		set("Hookonce-Event-Type", headerSafe(w.Type))
	}
	set("Hookonce-Attempt", strconv.FormatInt(w.Token, 10))
	if d.authorization != "" {
		set("Authorization", d.authorization)
	}
	if _, ok := h["User-Agent"]; !ok {
		set("User-Agent", "hookonce")
	}
	return h
}
