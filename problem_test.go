package hookonce_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// Every fault has a name of its own, which the log has too, says whether the same request may be sent again, and under
// which key, and links to its own section.
func TestIdempotentFaultsSayWhatToDo(t *testing.T) {
	var log strings.Builder
	logger := hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
	fails := func(err error) http.Handler {
		return counter(memstore.New(), func(w http.ResponseWriter, _ *http.Request, _ *memstore.Tx) error {
			io.WriteString(w, strings.Repeat("x", 200))
			return err
		}, hookonce.WithMaxResponse(100), logger)
	}
	h := counter(memstore.New(), new(till).charge, hookonce.WithMaxBody(2), logger)
	buy(h, "k1", "10")
	instances := map[string]bool{}
	for name, c := range map[string]struct {
		w         *httptest.ResponseRecorder
		retryable bool
		key       string
	}{
		"idempotency-key-missing":   {buy(h, "", "10"), false, ""},
		"idempotency-key-malformed": {buy(h, `"k1`, "10"), false, `"k1`},
		"idempotency-key-reused":    {buy(h, ` "k1" `, "11"), false, ` "k1" `},
		"body-too-large":            {buy(h, "k2", "100"), false, "k2"},
		"body-truncated":            {buy(h, "k2", "1", func(r *http.Request) { r.Body = io.NopCloser(broken{}) }), true, "k2"},
		"method-not-allowed":        {buy(h, "k2", "", func(r *http.Request) { r.Method = http.MethodGet }), false, "k2"},
		"unavailable":               {buy(fails(errors.New("away")), "k2", "10"), true, "k2"},
		"failed":                    {buy(fails(hookonce.Permanent(errors.New("never"))), "k2", "10"), false, "k2"},
		"answer-too-large":          {buy(fails(nil), "k2", "10"), false, "k2"},
	} {
		wantAnswer(t, c.w, c.w.Code, name)
		var doc struct {
			Instance, Key, Documentation string
			Retryable                    *bool
		}
		if err := json.Unmarshal(c.w.Body.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Retryable == nil || *doc.Retryable != c.retryable || doc.Key != c.key || doc.Documentation != hookonce.DefaultDocumentation+"#"+name {
			t.Errorf("%s: answered %s", name, c.w.Body)
		}
		if instances[doc.Instance] || !strings.HasPrefix(doc.Instance, "urn:hookonce:") || strings.Count(log.String(), doc.Instance) != 1 {
			t.Errorf("%s: the instance %q; logged %s", name, doc.Instance, &log)
		}
		instances[doc.Instance] = true
	}
}

// A handler that takes the key off its request, so that it goes to nobody else, changes nothing of what the client is told.
func TestIdempotentKnowsTheKeyThatAHandlerTookOff(t *testing.T) {
	lost := errors.New("away")
	for name, h := range map[string]http.Handler{
		"a transaction": counter(memstore.New(), func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
			r.Header.Del("Idempotency-Key")
			hookonce.PinRequest(r.Context())
			return lost
		}),
		"a lease": hookonce.IdempotentLease(memstore.New(), "charges", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Idempotency-Key")
			hookonce.PinRequest(r.Context())
			w.WriteHeader(http.StatusServiceUnavailable)
			panic("cut short")
		}), hookonce.WithoutScope()),
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				w := buy(h, "k1", "10")
				var doc struct {
					Key       string
					Retryable bool
				}
				if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
					t.Fatal(err)
				}
				if doc.Key != "k1" || !doc.Retryable || w.Header().Get("Retry-After") == "" {
					t.Errorf("answered %d %v %s", w.Code, w.Header(), w.Body)
				}
			}
		})
	}
}

// A key that is longer than one can be is not sent back, and an address with an anchor is that of the page.
func TestIdempotentFaultsKeepToTheirMeasure(t *testing.T) {
	h := counter(memstore.New(), new(till).charge, hookonce.WithDocumentation("https://developer.example.com/keys#faults"))
	w := buy(h, strings.Repeat("k", 10_000), "10")
	wantAnswer(t, w, 400, "idempotency-key-malformed")
	if w.Body.Len() > 1000 || !strings.Contains(w.Body.String(), `"https://developer.example.com/keys#faults"`) {
		t.Errorf("answered %s", w.Body)
	}
}

// Whoever is refused before anybody looked at what was sent is in the log and in the metrics, once, under a reason of a closed set,
// whichever handler it is. A body that a middleware has read is our fault, and not the sender's: 503, and the log says who is to
// blame and what to do. One that did not arrive in time is the sender's.
func TestRefusalsAreLoggedAndObserved(t *testing.T) {
	full := http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("a 1234567")), 4)
	for name, c := range map[string]struct {
		method string
		body   io.Reader
		status int
		kind   string
		reason string
		level  string
		says   string
	}{
		"a middleware has read it":    {"POST", strings.NewReader(""), 503, "unavailable", hookonce.ReasonUndecided, "ERROR", "put the handler in front of that middleware"},
		"it broke off":                {"POST", broken{}, 400, "body-truncated", hookonce.ReasonTruncated, "WARN", "the body ended before it was complete"},
		"it did not arrive in time":   {"POST", iotest.ErrReader(os.ErrDeadlineExceeded), 408, "body-too-slow", hookonce.ReasonSlow, "WARN", "the body did not arrive in time"},
		"it is too large":             {"POST", strings.NewReader("a 12345678"), 413, "body-too-large", hookonce.ReasonTooLarge, "WARN", "8 bytes is the limit of WithMaxBody"},
		"too large for the one front": {"POST", full, 413, "body-too-large", hookonce.ReasonTooLarge, "WARN", "4 bytes is the limit of a middleware"},
		"the one in front refuses it": {"POST", iotest.ErrReader(hookonce.RetryAfter(time.Minute, errors.New("full"))), 503, "unavailable", hookonce.ReasonUndecided, "ERROR", "full"},
		"the method":                  {"GET", http.NoBody, 405, "method-not-allowed", hookonce.ReasonMethod, "WARN", "POST"},
	} {
		var log strings.Builder
		var seen []hookonce.Observation
		small, logger := hookonce.WithMaxBody(8), hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		observer := hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = append(seen, o) })
		for door, h := range map[string]http.Handler{
			"Webhook":         hookonce.Webhook(memstore.New(), "sender", sender{}, new(ledger).handle, small, logger, observer),
			"WebhookLease":    leased(memstore.New(), func(context.Context, *hookonce.Event) error { return nil }, small, logger, observer),
			"Idempotent":      counter(memstore.New(), new(till).charge, small, logger, observer),
			"IdempotentLease": desk(memstore.New(), new(printer), small, logger, observer),
		} {
			if door == "IdempotentLease" && c.method == "GET" {
				continue // which goes to the handler as it is
			}
			log.Reset()
			seen = nil
			if s, ok := c.body.(io.Seeker); ok {
				_, _ = s.Seek(0, io.SeekStart)
			}
			r := httptest.NewRequest(c.method, "/", io.NopCloser(c.body))
			r.Header.Set("Idempotency-Key", "k1")
			r.Header.Set("Sig", "ok")
			if r.ContentLength = 3; c.status == 413 {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), `"urn:hookonce:problem:`+c.kind+`"`) || !strings.Contains(w.Body.String(), `"reason":"`+c.reason+`"`) {
				t.Errorf("%s: %s answered %d %s", name, door, w.Code, w.Body)
			}
			if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "level="+c.level+" ") || !strings.Contains(line, " rejected\" ") ||
				!strings.Contains(line, fmt.Sprintf(" reason=%s status=%d ", c.reason, c.status)) || !strings.Contains(line, c.says) || strings.Contains(line, "a 1") {
				t.Errorf("%s: %s logged %s", name, door, &log)
			}
			if len(seen) != 1 || seen[0].Status != "rejected" || seen[0].Reason != c.reason || seen[0].Source == "" || (seen[0].Provider == "sender") != strings.HasPrefix(door, "Webhook") {
				t.Errorf("%s: %s observed %+v", name, door, seen)
			}
		}
	}
}

// A request without a body, as http.NewRequest makes it, has an empty one.
func TestNoBodyIsAnEmptyOne(t *testing.T) {
	for door, h := range map[string]http.Handler{
		"Webhook":         hookonce.Webhook(memstore.New(), "sender", sender{}, new(ledger).handle, quiet),
		"WebhookLease":    leased(memstore.New(), func(context.Context, *hookonce.Event) error { return nil }),
		"Idempotent":      counter(memstore.New(), new(till).charge),
		"IdempotentLease": desk(memstore.New(), new(printer)),
	} {
		r, err := http.NewRequest(http.MethodPost, "https://shop.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k1")
		r.Header.Set("Sig", "ok")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code/100 != 2 {
			t.Errorf("%s answered %d %s", door, w.Code, w.Body)
		}
	}
}
