package relay_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/relay"
)

var receipt = hookonce.QueuedEffect{
	Effect: hookonce.Effect{
		Ref: hookonce.Ref{Source: "billing", Key: "évt 1"}, Name: "mail.receipt", Step: "receipt", Payload: []byte(`{"to":"a@b.example"}`),
	},
	ID: 7, Token: 3, Tries: 2, EnqueuedAt: time.Unix(1769904000, 0),
}

func TestPOSTSendsTheEffect(t *testing.T) {
	var got http.Header
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r.Header, r.Method+" "+r.URL.String()+" "+string(b)
	}))
	defer server.Close()
	handle := relay.POST(server.Client(), server.URL+"/hooks?team=7",
		relay.PostHeader("Authorization", "Bearer fake"), relay.PostHeader("idempotency-key", "theirs"))
	if err := handle(t.Context(), receipt); err != nil {
		t.Fatal(err)
	}
	if want := `POST /hooks?team=7 {"to":"a@b.example"}`; body != want {
		t.Errorf("came as %s, want %s", body, want)
	}
	for name, want := range map[string]string{
		"Content-Type":      "application/json",
		"Authorization":     "Bearer fake",
		"Idempotency-Key":   hookonce.EffectKey(receipt.Ref, "receipt"),
		"Hookonce-Effect":   "mail.receipt",
		"Hookonce-Source":   "billing",
		"Hookonce-Key":      "%C3%A9vt%201",
		"Hookonce-Attempt":  "3",
		"Webhook-Signature": "",
	} {
		if strings.Join(got[name], ",") != want {
			t.Errorf("%s: %v, want %s", name, got[name], want)
		}
	}
}

// What is signed verifies as Standard Webhooks do, with each of the secrets.
func TestPOSTSigns(t *testing.T) {
	now := time.Unix(1769904000, 0)
	var came hookonce.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		came = hookonce.Request{Method: r.Method, Header: r.Header, Body: b, Now: now}
	}))
	defer server.Close()
	handle := relay.POST(nil, server.URL, relay.PostSecrets("whsec_ZmFrZSBzZWNyZXQ=", "whsec_bmV3IGZha2Ugc2VjcmV0"),
		relay.PostClock(func() time.Time { return now }))
	if err := handle(t.Context(), receipt); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"whsec_ZmFrZSBzZWNyZXQ=", "whsec_bmV3IGZha2Ugc2VjcmV0"} {
		d, err := provider.Standard(secret).Open(&came)
		if err != nil || len(d.Events) != 1 || d.Events[0].Key != "msg_"+receipt.IdempotencyKey() {
			t.Errorf("%v, %v", d, err)
		}
	}
	keys := [][]byte{[]byte("fake secret"), []byte("new fake secret")}
	id, at, facts := came.Header.Get("Webhook-Id"), came.Header.Get("Webhook-Timestamp"), came.Header.Get("Hookonce-Signature")
	if outgoing.VerifyFacts(keys[1:], id, at, came.Header, facts) != 1 {
		t.Error("what the headers say is not signed")
	}
	came.Header.Set("Idempotency-Key", "forged")
	if outgoing.VerifyFacts(keys, id, at, came.Header, facts) != 0 {
		t.Error("another key verifies as well")
	}
	came.Body[0]++
	if _, err := provider.Standard("whsec_ZmFrZSBzZWNyZXQ=").Open(&came); err == nil {
		t.Error("another body verifies as well")
	}
}

// TestPOSTSignsWithHTTPMessageSignatures: once with each key, over what the request is about, for whoever has the public
// key of one.
func TestPOSTSignsWithHTTPMessageSignatures(t *testing.T) {
	now := time.Unix(1769904000, 0)
	var came hookonce.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		came = hookonce.Request{Method: r.Method, URL: "http://" + r.Host + r.RequestURI, Header: r.Header, Body: b, Now: now}
	}))
	defer server.Close()
	old, next := httpsigtest.Of(httpsig.Ed25519), httpsigtest.Of(httpsig.RSAPSSSHA512)
	handle := relay.POST(nil, server.URL+"/in?a=1", relay.PostHTTPSignature("old", old.Private), relay.PostHTTPSignature("next", next.Private),
		relay.PostSecrets("whsec_ZmFrZSBzZWNyZXQ="), relay.PostClock(func() time.Time { return now }))
	if err := handle(t.Context(), receipt); err != nil {
		t.Fatal(err)
	}
	known := provider.HTTPSignatureConfig{
		Secrets: []string{next.Public}, KeyID: "next", Headers: []string{"Idempotency-Key", "Hookonce-Effect", "Content-Type"},
		Key: []spec.Value{"header:Idempotency-Key"}, Type: "header:Hookonce-Effect",
	}
	d, err := provider.HTTPSignature(known).Open(&came)
	if err != nil || d.Events[0].Key != receipt.IdempotencyKey() || d.Events[0].Type != receipt.Name || !d.Events[0].KeySigned {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := provider.Standard("whsec_ZmFrZSBzZWNyZXQ=").Open(&came); err != nil {
		t.Error("the other signature: ", err)
	}
	came.Header.Set("Hookonce-Effect", "forged")
	if _, err := provider.HTTPSignature(known).Open(&came); err == nil {
		t.Error("another effect verifies as well")
	}
	for want, o := range map[string][]relay.PostOption{
		"public key": {relay.PostHTTPSignature("k", old.Public)}, "the keyid is": {relay.PostHTTPSignature("", old.Private)},
		"at most 4": slices.Repeat([]relay.PostOption{relay.PostHTTPSignature("k", httpsigtest.Secret)}, 5),
	} {
		if _, err := relay.NewPOST(nil, server.URL, o...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if _, err := relay.NewPOST(nil, "https://b\u00fccher.example", relay.PostHTTPSignature("k", old.Private)); err == nil {
		t.Error("it signs for a host that is sent in another spelling")
	}
}

// TestPostedEffectsAreEventsOfTheirOwn: to a receiver with provider.Hookonce each effect of an
// event is another one, and none is the event, nor what a sender may have sent under the effect's
// key; the same effect again is a copy.
func TestPostedEffectsAreEventsOfTheirOwn(t *testing.T) {
	const secret = "whsec_ZmFrZSBzZWNyZXQ="
	key := httpsigtest.Of(httpsig.Ed25519)
	nameless := hookonce.QueuedEffect{Effect: hookonce.Effect{Ref: hookonce.Ref{Source: "billing"}, Name: "mail.receipt", Step: "mail.receipt"}, ID: 8, Token: 1}
	named := func(name, step string) hookonce.QueuedEffect {
		e := receipt
		e.Name, e.Step = name, step
		return e
	}
	effects := []hookonce.QueuedEffect{receipt, named("mail.receipt", "copy for the files"), named("crm.update", "crm.update"), nameless}
	for name, c := range map[string]struct {
		signed   relay.PostOption
		provider hookonce.Provider
	}{
		"Standard Webhooks":       {relay.PostSecrets(secret), provider.Hookonce(secret)},
		"HTTP message signatures": {relay.PostHTTPSignature("k", key.Private), provider.HookonceHTTP(provider.HookonceHTTPConfig{Keys: []string{key.Public}})},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			done := []hookonce.Ref{receipt.Ref} // on the tables of whoever enqueued the effects
			for _, e := range effects {
				done = append(done, hookonce.Ref{Source: e.Source, Key: e.IdempotencyKey()})
			}
			for _, ref := range done {
				claim, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref, Lease: time.Minute})
				if err == nil {
					err = store.Complete(t.Context(), claim)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var handled []hookonce.Event
			server := httptest.NewServer(hookonce.Webhook(store, "crm", c.provider, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
				handled = append(handled, *ev)
				return nil
			}))
			defer server.Close()
			handle := relay.POST(nil, server.URL+"/hooks?team=7", c.signed)
			for _, e := range slices.Concat(effects, effects) {
				if err := handle(t.Context(), e); err != nil {
					t.Fatalf("%s of %v: %v", e.Step, e.Ref, err)
				}
			}
			if len(handled) != len(effects) {
				t.Fatalf("%d effects were handled, of %d", len(handled), len(effects))
			}
			for i, e := range effects {
				ev := handled[i]
				if ev.Ref() != (hookonce.Ref{Source: "crm", Key: e.IdempotencyKey()}) || ev.Type != e.Name || !ev.KeySigned || ev.Gateway.Attempt != e.Token || ev.Header.Get("Hookonce-Source") != "billing" {
					t.Errorf("%s of %v is handled as %+v", e.Step, e.Ref, ev)
				}
			}
		})
	}
}

func TestPOSTJudgesTheAnswer(t *testing.T) {
	for _, c := range []struct {
		status    int
		retry     string
		ok        bool
		permanent bool
		after     time.Duration
	}{
		{status: 204, ok: true},
		{status: 301},
		{status: 404},
		{status: 410, permanent: true},
		{status: 422, permanent: true}, // as configured
		{status: 500, retry: "60"},
		{status: 503, retry: "Sun, 01 Feb 2026 00:02:00 GMT", after: 2 * time.Minute},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Retry-After", c.retry)
			w.WriteHeader(c.status)
			if r.URL.Path == "/elsewhere" {
				t.Errorf("status %d: the redirect was followed", c.status)
			}
		}))
		handle := relay.POST(nil, server.URL, relay.PostPermanent(422), relay.PostClock(func() time.Time { return time.Unix(1769904000, 0) }))
		err := handle(t.Context(), receipt)
		after, _ := hookonce.RetryDelay(err)
		if (err == nil) != c.ok || hookonce.IsPermanent(err) != c.permanent || after != c.after {
			t.Errorf("%d, Retry-After %q: %v", c.status, c.retry, err)
		}
		server.Close()
	}
}

// Statuses that say that the other side cannot now end no effect.
func TestPOSTRefusesStatusesThatPass(t *testing.T) {
	for _, status := range []int{200, 408, 429, 503, 600} {
		if _, err := relay.NewPOST(nil, "http://crm.example/", relay.PostPermanent(422, status)); err == nil {
			t.Errorf("%d was taken", status)
		}
	}
}

// What net/http would send never, or leave out, is refused at once and not with each effect. The error says of what it is,
// and not the value, which may be a secret.
func TestPOSTRefusesHeadersThatCannotBeSent(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"Authorization", "Bearer fake-token\n", "Authorization has control characters, which a header cannot carry: is there a line break at its end?"},
		{"x-token", "fake-token\r", "X-Token"},
		{"X-Token", "fake\x00token", "X-Token"},
		{"X Token", "fake-token", `"X Token"`},
		{"Authorization:", "fake-token", `"Authorization:"`},
		{"", "fake-token", `""`},
		{"host", "crm.example", "Host belongs to the connection"},
		{"Content-Length", "7", "Content-Length"},
		{"TE", "trailers", "Te belongs"},
	} {
		_, err := relay.NewPOST(nil, "http://crm.example/", relay.PostHeader(c.name, c.value))
		if err == nil || !strings.Contains(err.Error(), "PostHeader") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "fake") {
			t.Errorf("%q: %q: %v", c.name, c.value, err)
		}
	}
	if _, err := relay.NewPOST(nil, "http://crm.example/", relay.PostHeader("X-Note", "tab\tand é")); err != nil {
		t.Error(err)
	}
}

// The status alone decides: an answer that never ends holds up nobody, nor does a connection that is switched to
// another protocol.
func TestPOSTWaitsForNoBody(t *testing.T) {
	for head, done := range map[string]bool{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n":                    true,
		"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf":                            false,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n": false,
	} {
		returned := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = out.WriteString(head)
			_ = out.Flush()
			select {
			case <-returned:
			case <-time.After(time.Minute):
				t.Errorf("%q: still waited for", head)
			}
		}))
		if err := relay.POST(nil, server.URL)(t.Context(), receipt); (err == nil) != done {
			t.Errorf("%q: %v", head, err)
		}
		close(returned)
		server.Close()
	}
}

// Posts that are under way at once have a connection each, and those after them use these again: a
// system has no more than some ten thousands of ports for one address, each for a minute.
func TestPOSTKeepsItsConnections(t *testing.T) {
	const atOnce, rounds = 20, 5
	var dialled atomic.Int32
	var all sync.WaitGroup // of a round are there
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		all.Done()
		all.Wait()
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			dialled.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	handle := relay.POST(nil, server.URL)
	for range rounds {
		all.Add(atOnce)
		var posts errgroup.Group
		for range atOnce {
			posts.Go(func() error { return handle(t.Context(), receipt) })
		}
		if err := posts.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n := dialled.Load(); n > 2*atOnce { // net/http does not keep one on which it was slow to see that all was sent
		t.Errorf("%d connections for %d posts at once, %d times", n, atOnce, rounds)
	}
}

// An effect that ends the process which works on it must not end one for each kept connection in a single attempt.
func TestOnePostEndsFewProcesses(t *testing.T) {
	const kept = 8
	var (
		all  sync.WaitGroup
		late atomic.Bool
		sent atomic.Int32
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !late.Load() {
			all.Done()
			all.Wait() // so that each needs a connection of its own
			return
		}
		sent.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if conn, _, err := http.NewResponseController(w).Hijack(); err != nil {
			t.Error(err)
		} else {
			_ = conn.Close()
		}
	}))
	defer server.Close()
	handle := relay.POST(nil, server.URL)
	var posts errgroup.Group
	all.Add(kept)
	for range kept {
		posts.Go(func() error { return handle(t.Context(), receipt) })
	}
	if err := posts.Wait(); err != nil {
		t.Fatal(err)
	}
	late.Store(true)
	if err := handle(t.Context(), receipt); err == nil || err.Error() != "connection closed before the answer" {
		t.Errorf("error: %v", err)
	}
	if n := sent.Load(); n < 2 || n > 3 {
		t.Errorf("one attempt was sent %d times", n)
	}
}

// A failure says in few words why, repeats nothing that the other side wrote, and still is the error that it was.
func TestPOSTSaysWhyThereIsNoAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = out.WriteString("SSH-2.0-fake-secret\r\n\r\n")
		_ = out.Flush()
		_ = conn.Close()
	}))
	handle := relay.POST(nil, server.URL)
	if err := handle(t.Context(), receipt); err == nil || err.Error() != "no valid HTTP answer" {
		t.Errorf("error: %v", err)
	}
	server.Close()
	if err := handle(t.Context(), receipt); err == nil || err.Error() != "connection refused" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error: %v", err)
	}
}

// The address may hold a secret: errors, which are stored and logged, do not repeat it.
func TestPOSTKeepsTheAddressToItself(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := relay.POST(nil, server.URL+"/fake-secret")(ctx, receipt)
	if err == nil || strings.Contains(err.Error(), "fake-secret") {
		t.Errorf("error: %v", err)
	}
	if _, err := relay.NewPOST(nil, "http://crm.example:port/fake-secret"); err == nil || strings.Contains(err.Error(), "fake-secret") {
		t.Errorf("error: %v", err)
	}
}
