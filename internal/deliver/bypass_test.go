package deliver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// bypassing is the same event as piece makes, on its way past the store.
func bypassing(id int) *journal.Work {
	w := piece(id)
	w.Token, w.Unprotected = 0, true
	return w
}

// What goes past the store comes as it would have come otherwise, under the same key and message id, and
// says so.
func TestBypassAttempt_sameRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var came []http.Header
		s := newStandIn(t, deliver.Destination{URL: "http://app.invalid/", Secrets: []string{"a-fake-secret"}}, func(r *http.Request) (*http.Response, error) {
			came = append(came, r.Header.Clone())
			return status(200), nil
		})
		s.bring(piece(1))
		if o := s.BypassAttempt(t.Context(), bypassing(1)); o.State != journal.Done || o.Status != 200 {
			t.Fatalf("BypassAttempt = %+v", o)
		}
		usual, direct := came[0], came[1]
		if direct.Get("Hookonce-Unprotected") != "true" || direct.Get("Hookonce-Attempt") != "" || direct.Get("Hookonce-Event-Id") != "" || usual.Get("Hookonce-Unprotected") != "" {
			t.Errorf("the usual one came with %v, the direct one with %v", usual, direct)
		}
		for _, name := range []string{"Idempotency-Key", "Webhook-Id", "Webhook-Signature", "Hookonce-Key", "Hookonce-Source"} {
			if usual.Get(name) == "" || direct.Get(name) != usual.Get(name) {
				t.Errorf("%s: %q, and directly %q", name, usual.Get(name), direct.Get(name))
			}
		}
	})
}

// What is not a 2xx is not done, and no outcome of it reaches the journal. Why is told by the outcome alone: there is no record.
func TestBypassAttempt_failures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer transport
		s := newStandIn(t, nowhere, func(r *http.Request) (*http.Response, error) { return answer(r) })
		answers := func(code int) transport { return answers(&code) }
		const patient, hurried = 20 * time.Second, time.Second
		for _, c := range []struct {
			answer transport
			time   time.Duration
			why    string
		}{
			{hang, hurried, "no time was left: the sender waits no longer"},
			{hang, patient, "timeout after 15s"},
			{func(*http.Request) (*http.Response, error) { panic("of a test") }, hurried, "panic during the delivery"},
			{func(*http.Request) (*http.Response, error) {
				at(hurried)
				return status(500), nil
			}, hurried, "status 500"},
			{answers(302), hurried, "status 302: a redirect that does not say where to"},
			{answers(404), hurried, "status 404"},
			{answers(410), hurried, "status 410"},
			{answers(500), hurried, "status 500"},
		} {
			answer = c.answer
			ctx, cancel := context.WithTimeout(t.Context(), c.time)
			if o := s.BypassAttempt(ctx, bypassing(1)); o.State == journal.Done || o.State == "" || o.Error != c.why {
				t.Errorf("want %q: %+v", c.why, o)
			}
			cancel()
		}
		stranger := bypassing(1)
		stranger.Destination = "stranger"
		if o := s.BypassAttempt(t.Context(), stranger); o.State != journal.Failed {
			t.Errorf("to a stranger: %+v", o)
		}
		answer = hang
		cut := make(chan journal.Outcome, 1)
		go func() { cut <- s.BypassAttempt(t.Context(), bypassing(1)) }()
		synctest.Wait()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Stop(over)
		if o := <-cut; o.State != journal.Pending || o.Error != "the gateway is being stopped" {
			t.Errorf("cut off by a stop: %+v", o)
		}
		if n := len(s.outcomes); n != 0 {
			t.Errorf("the journal was told %d outcomes", n)
		}
	})
}

// Nothing is attempted at a destination that is ill and not to be probed now, or that bears no more at once; and attempts
// past the store count towards both.
func TestBypassAttempt_waitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts, gate := 0, make(chan struct{})
		s := newStandIn(t, deliver.Destination{URL: "http://app.invalid/", Concurrency: 1, Breaker: deliver.Breaker{Failures: 2}}, func(*http.Request) (*http.Response, error) {
			attempts++
			<-gate
			return status(503), nil
		})
		first := make(chan journal.Outcome, 1)
		go func() { first <- s.BypassAttempt(t.Context(), bypassing(1)) }()
		synctest.Wait()
		if o := s.BypassAttempt(t.Context(), bypassing(2)); o.State != journal.Failed || attempts != 1 {
			t.Errorf("beside another one: %+v after %d attempts", o, attempts)
		}
		close(gate)
		<-first
		s.BypassAttempt(t.Context(), bypassing(3))
		if o := s.BypassAttempt(t.Context(), bypassing(4)); o.State != journal.Failed || attempts != 2 {
			t.Errorf("while it is ill: %+v after %d attempts", o, attempts)
		}
	})
}

// relaying is a deliverer whose destination answers with what the test makes up, for a sender who waits.
func relaying(t *testing.T, answer func(r *http.Request) (*http.Response, error)) journal.Outcome {
	t.Helper()
	var o journal.Outcome
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nowhere, func(o *options) {
			o.transport = transport(answer)
			o.Relayed = map[string]time.Duration{"billing": time.Minute}
		})
		o = r.BypassAttempt(t.Context(), bypassing(1))
	})
	return o
}

// Of the headers of an answer those go to the sender that are meant for it.
func TestReply_headers(t *testing.T) {
	o := relaying(t, func(*http.Request) (*http.Response, error) {
		res := status(201)
		res.Header = http.Header{
			"Content-Type": {"text/xml"}, "X-Two": {"a", "b"}, "Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"5"},
			"Set-Cookie": {"session=1"}, "Strict-Transport-Security": {"max-age=1"}, "Hookonce-Status": {"forged"}, "Content-Length": {"11"},
			"Transfer-Encoding": {"chunked"}, "Bad Name": {"x"}, "X-Bad": {"a\r\nInjected: 1"},
			"Alt-Svc": {"h3=\":443\""}, "Clear-Site-Data": {"\"*\""}, "Date": {"Mon, 01 Jan 2024 00:00:00 GMT"}, "Nel": {"{}"},
			"Proxy-Authentication-Info": {"nextnonce=1"}, "Report-To": {"{}"}, "Reporting-Endpoints": {"a=\"https://a.test\""}, "Set-Cookie2": {"session=1"},
		}
		return res, nil
	})
	if o.Response == nil || string(o.Response.Header) != "Content-Type: text/xml\r\nX-Bad: a  Injected: 1\r\nX-Two: a\r\nX-Two: b\r\n" {
		t.Errorf("reply %+v", o.Response)
	}
	if o.State != journal.Done || o.Response.Status != 201 || string(o.Response.Body) != "secret body" || string(o.Excerpt) != "secret body" {
		t.Errorf("outcome %+v", o)
	}
}

// broken is a body that ends early.
type broken struct{ *strings.Reader }

func (b broken) Read(p []byte) (int, error) {
	if b.Len() == 0 {
		return 0, errBroken
	}
	return b.Reader.Read(p)
}

func (broken) Close() error { return nil }

// A success that cannot be passed on whole is none; a failure stays what it is.
func TestReply_notWhole(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		broken bool
		done   bool
		error  string
	}{
		"just fits":          {200, strings.Repeat("x", deliver.MaxReply), false, true, ""},
		"too long":           {200, strings.Repeat("x", deliver.MaxReply+1), false, false, "longer than"},
		"breaks off":         {200, "half", true, false, "no valid"},
		"a refusal":          {404, "half", true, false, "status 404"},
		"a refusal too long": {404, strings.Repeat("x", deliver.MaxReply+1), false, false, "status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			o := relaying(t, func(*http.Request) (*http.Response, error) {
				res := status(c.status)
				res.Body = http.NoBody
				if c.broken {
					res.Body = broken{strings.NewReader(c.body)}
				} else {
					res.Body = struct {
						*strings.Reader
						nothing
					}{strings.NewReader(c.body), nothing{}}
				}
				return res, nil
			})
			if (o.State == journal.Done) != c.done || (o.Response != nil) != c.done || !strings.Contains(o.Error, c.error) {
				t.Errorf("state %s, error %q, reply %v", o.State, o.Error, o.Response != nil)
			}
		})
	}
}

// nothing needs no closing.
type nothing struct{}

func (nothing) Close() error { return nil }

// What an application answers a sender who waits for it is an answer, and no failure of the application: 4xx for
// everybody makes it not ill.
func TestRelayed_refusalsAreAnswers(t *testing.T) {
	for source, want := range map[string]deliver.State{"billing": deliver.Healthy, "another": deliver.Ill} {
		synctest.Test(t, func(t *testing.T) {
			code := 409
			s := newStandIn(t, nowhere, answers(&code))
			if err := s.Reload(to(nowhere), map[string]time.Duration{source: time.Minute}); err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				s.bring(piece(i))
				<-time.After(5 * time.Second)
			}
			if got := s.Destinations()[0].State; got != want {
				t.Errorf("answers of %s are relayed: it is %s, want %s", source, got, want)
			}
		})
	}
}
