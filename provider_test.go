package hookonce_test

import (
	"errors"
	"testing"

	"github.com/hookonce/hookonce"
)

// TestProfileRefusal: who refuses says what HTTP has for it, and the profile what the sender understands.
func TestProfileRefusal(t *testing.T) {
	forged := &hookonce.RejectError{Reason: hookonce.ReasonSignatureMismatch}
	refused := &hookonce.RejectError{Reason: hookonce.ReasonHandshakeRefused, Status: 418}
	usual, own, touchy := hookonce.Profile{}, hookonce.Profile{Rejected: 403, NotReady: 500}, hookonce.Profile{Rejected: 503}
	early := hookonce.Profile{Rejected: 429}
	for _, c := range []struct {
		name    string
		profile hookonce.Profile
		status  int
		err     error
		want    int
	}{
		{"not authentic", usual, 401, forged, 401},
		{"not authentic, own status", own, 401, forged, 403},
		{"a rejection with a status", own, 401, refused, 418},
		{"not authentic, without a reason", own, 401, hookonce.ErrUnverified, 403},
		{"not durable", usual, 503, nil, 503},
		{"not durable, own status", own, 503, errors.New("full"), 500},
		{"too large", own, 413, nil, 413},
		{"too large, and any 4xx disables the webhook", touchy, 413, nil, 503},
		{"cut short, and any 4xx disables the webhook", touchy, 400, nil, 503},
		{"not authentic, and any 4xx disables the webhook", touchy, 401, forged, 503},
		{"another method, which is not the sender's", touchy, 405, nil, 405},
		{"too large, and any 4xx but 429 is final", early, 413, nil, 429},
		{"too slow, and any 4xx but 429 is final", early, 408, nil, 429},
		{"cut short, and any 4xx but 429 is final", early, 400, nil, 429},
		{"headers too large, and any 4xx but 429 is final", early, 431, nil, 429},
		{"not authentic, and any 4xx but 429 is final", early, 401, forged, 429},
		{"not durable, and any 4xx but 429 is final", early, 503, nil, 503},
		{"another method, which is not the sender's, who is told to wait", early, 405, nil, 405},
	} {
		if got := c.profile.Refusal(c.status, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestProfileMethods(t *testing.T) {
	for allow, p := range map[string]hookonce.Profile{"POST": {}, "POST, GET, HEAD": {Methods: []string{"GET", "HEAD"}}} {
		if p.Allow() != allow || !p.Takes("POST") || p.Takes("GET") != (len(p.Methods) > 0) || p.Takes("PUT") {
			t.Errorf("%+v allows %s", p, p.Allow())
		}
	}
}

// TestAnswerInert: what a stranger wrote is never a page.
func TestAnswerInert(t *testing.T) {
	for media, want := range map[string]string{
		"":                         "text/plain; charset=utf-8",
		"text/html":                "text/plain; charset=utf-8",
		"application/json/x":       "text/plain; charset=utf-8",
		"text/plain":               "text/plain",
		"application/json; q=1":    "application/json; q=1",
		"Application/JSON":         "Application/JSON",
		"image/svg+xml":            "text/plain; charset=utf-8",
		"text/plain, text/html; x": "text/plain; charset=utf-8",
	} {
		if got := (hookonce.Answer{ContentType: media, Body: []byte("<hi>")}).Inert(); got.ContentType != want || got.Status != 200 {
			t.Errorf("%q: %+v, want %q", media, got, want)
		}
	}
	if got := (hookonce.Answer{Status: 204, ContentType: "text/html"}).Inert(); got.ContentType != "" || got.Status != 204 {
		t.Errorf("without a body: %+v", got)
	}
	sent := hookonce.Answer{Header: map[string]string{"X-Hook-Secret": "c", "X-Other": "two words", "Set-Cookie": "c", "X-Accel-Redirect": "/"}}
	if got := sent.Inert(); len(got.Header) != 1 || got.Header["X-Hook-Secret"] != "c" || len(sent.Header) != 4 {
		t.Errorf("%v of %v", got.Header, sent.Header)
	}
}
