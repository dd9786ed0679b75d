package deliver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
)

// Every way to fail has its kind, and only an answer that counts has a status: what fails of one kind, or with one
// status, is found and done again as a whole. See also journaltest for the body that is gone.
func TestErrorKinds(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	stranger := httptest.NewTLSServer(respond(200))
	t.Cleanup(stranger.Close)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc // or
		to      deliver.Destination
		kind    journal.ErrorKind
		status  int
	}{
		{name: "500", handler: respond(500), kind: journal.ErrorStatus, status: 500},
		{name: "404", handler: respond(404), kind: journal.ErrorStatus, status: 404},
		{name: "redirect", handler: respond(302), kind: journal.ErrorStatus, status: 302},
		{name: "given up", handler: respond(410), kind: journal.ErrorStatus, status: 410},
		{name: "200", handler: respond(200), status: 200},
		{name: "hang", handler: silent, kind: journal.ErrorTimeout},
		{name: "reset", handler: hijacked(t, "", true), kind: journal.ErrorReset},
		{name: "closed", handler: hijacked(t, "", false), kind: journal.ErrorReset},
		{name: "not HTTP", handler: hijacked(t, "SSH-2.0-secret body\r\n\r\n", false), kind: journal.ErrorInvalid},
		{name: "nobody listens", to: deliver.Destination{URL: closed.URL}, kind: journal.ErrorRefused},
		{name: "no such host", to: deliver.Destination{URL: "http://nowhere.invalid/"}, kind: journal.ErrorDNS},
		{name: "a certificate of somebody else", to: deliver.Destination{URL: stranger.URL}, kind: journal.ErrorTLS},
		{name: "HTTP where TLS is expected", to: deliver.Destination{URL: "https://" + plainServer(t)}, kind: journal.ErrorTLS},
		{name: "an address that is not allowed", to: deliver.Destination{URL: closed.URL, Policy: deliver.AddressPolicy{DenyPrivate: true}}, kind: journal.ErrorAddress},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.handler != nil {
				app := httptest.NewServer(c.handler)
				t.Cleanup(app.Close)
				c.to.URL = app.URL
			}
			c.to.Schedule, c.to.Timeout = hourly, 500*time.Millisecond
			if c.kind == journal.ErrorDNS {
				c.to.Timeout = 10 * time.Second
			}
			r := newRig(t, c.to, nil)
			r.accept(t, entry("a"))
			if o := r.attempts(t, 1)[0]; o.Kind != c.kind || o.Status != c.status {
				t.Errorf("%s %d, %q; want %s %d", o.Kind, o.Status, o.Error, c.kind, c.status)
			}
			r.shutDown(t)
		})
	}
}

// silent answers nothing.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices a hang-up only after the body
	<-r.Context().Done()
}

// plainServer returns the address of a server without TLS.
func plainServer(t *testing.T) string {
	app := httptest.NewServer(respond(200))
	t.Cleanup(app.Close)
	return app.Listener.Addr().String()
}

// An answer that a sender waits for and that cannot be passed on is no answer of its status.
func TestErrorKindOfAnAnswerThatIsTooLong(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, deliver.MaxReply+1))
	}))
	defer app.Close()
	r := newRig(t, deliver.Destination{URL: app.URL, Schedule: hourly}, func(o *options) { o.Relayed = map[string]time.Duration{"billing": time.Minute} })
	r.accept(t, entry("a"))
	if o := r.attempts(t, 1)[0]; o.Kind != journal.ErrorInvalid || o.Status != 0 {
		t.Errorf("%s %d", o.Kind, o.Status)
	}
}

// A shutdown of our own is nobody's failure.
func TestErrorKindOfAShutdown(t *testing.T) {
	began := make(chan struct{})
	r := newRig(t, deliver.Destination{URL: "http://app.test/"}, func(o *options) {
		o.transport = transport(func(req *http.Request) (*http.Response, error) {
			close(began)
			return hang(req)
		})
	})
	id := r.accept(t, entry("a"))[0].ID
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = r.Stop(ctx) // it waits for nothing
	r.shutDown(t)
	h, err := r.model.History(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if d := h.Deliveries[0]; d.State != journal.Pending || d.Kind != "" || d.LastError != "" || len(h.Attempts) != 0 {
		t.Errorf("the delivery is %+v, with the attempts %+v", d, h.Attempts)
	}
}
