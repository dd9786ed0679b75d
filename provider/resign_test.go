package provider

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// appURL is where the application of these tests is.
const appURL = "http://app.internal:3000/hooks?team=shop"

// passedOn is an event of a request as it is passed on: later, to another URL, without the credentials.
func passedOn(p *spec.Provider, req *hookonce.Request, ev *hookonce.Event, late time.Duration) *hookonce.Request {
	h := maps.Clone(req.Header)
	for _, name := range append(p.Profile().SecretHeaders, "Authorization") {
		delete(h, name)
	}
	return &hookonce.Request{Method: http.MethodPost, URL: appURL, Header: h, Body: ev.Body, Now: now.Add(late)}
}

// app is what verifies there: the sender's own library, for all that it knows.
func app(t testing.TB, s spec.Spec, secrets ...string) *spec.Provider {
	t.Helper()
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(secrets...)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func resigner(t testing.TB, p *spec.Provider, to spec.Receiver) *spec.Resigner {
	t.Helper()
	r, err := p.Resigner(to)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEveryRenewableSignatureIsRenewed takes the sample of every sender with a shared secret to an application that
// verifies it a week later at another URL. What is said to last is accepted as it came, what is said to be renewed is
// not, and is once it is signed anew, under the same key.
func TestEveryRenewableSignatureIsRenewed(t *testing.T) {
	testskip.Race(t)
	counts := map[spec.Renewal]int{}
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		renewal, why := s.Renewal()
		counts[renewal]++
		if (renewal == spec.Fixed) != (why != "") {
			t.Errorf("%s, because %q", renewal, why)
		}
		if !s.Imitable() {
			if renewal != spec.Fixed {
				t.Errorf("%s: nobody but the sender has the key", renewal)
			}
			return
		}
		req := sent(t, p, "101", "")
		d, err := p.Open(req)
		if err != nil || d.Proof.Vouched <= 0 {
			t.Fatalf("%+v, %v", d, err)
		}
		ts := s.Verify[0].Time
		lenient := ts != nil && ts.Past == 0 // no tolerance is stated by the sender: applications have their own
		for _, late := range []time.Duration{0, time.Hour, 7 * day} {
			ev := d.Events[0]
			asItCame := passedOn(p, req, &ev, late)
			_, err := app(t, s, secretFor(s)).Open(asItCame)
			inTime := ts != nil && late <= ts.Past
			if accepted := err == nil; renewal != spec.Fixed && !inTime && late > 0 && !lenient && accepted != (renewal == spec.Lasts) {
				t.Errorf("%s: as it came, %v late: %v", renewal, late, err)
			}
			anew := passedOn(p, req, &ev, late)
			if err := resigner(t, p, spec.Receiver{}).Sign(anew, d.Proof.Vouched); err != nil {
				t.Fatal(err)
			}
			if renewal != spec.Renewed {
				if diff := cmp.Diff(asItCame, anew); diff != "" {
					t.Errorf("%s is changed: %s", renewal, diff)
				}
				continue
			}
			if got := one(t, app(t, s, secretFor(s)), anew); got.Key != ev.Key || got.Type != ev.Type {
				t.Errorf("anew, %v late: key %q, type %q; want %q, %q", late, got.Key, got.Type, ev.Key, ev.Type)
			}
			if id, ok := strings.CutPrefix(string(s.Verify[0].ID), "header:"); ok && anew.Header.Get(id) != req.Header.Get(id) {
				t.Errorf("the identifier of the message is %q, and was %q", anew.Header.Get(id), req.Header.Get(id))
			}
			if !bytes.Equal(anew.Body, ev.Body) && (ts == nil || !strings.HasPrefix(string(ts.In), "json:")) {
				t.Errorf("the body is another: %s", anew.Body)
			}
		}
	})
	if counts[spec.Renewed] < 30 || counts[spec.Lasts] < 15 || counts[spec.Fixed] < 10 {
		t.Errorf("the catalogue has %v", counts)
	}
}

// TestEverySharedSecretCanBeTheReceivers: with a secret of its own the application verifies everything that is not in
// the body.
func TestEverySharedSecretCanBeTheReceivers(t *testing.T) {
	testskip.Race(t)
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		renewal, _ := s.Renewal()
		r, err := p.Resigner(spec.Receiver{Secret: otherSecretFor(s), URL: "https://app.example/in"})
		if renewal == spec.Fixed {
			if err == nil {
				t.Error("it has a use for the secret of a receiver, and can sign nothing")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		req := sent(t, p, "101", "")
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		anew := passedOn(p, req, &d.Events[0], 7*day)
		if err := r.Sign(anew, d.Proof.Vouched); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(anew.URL, appURL) {
			t.Errorf("it goes to %s", anew.URL)
		}
		if _, query, ok := strings.Cut(strings.TrimPrefix(anew.URL, appURL), "&"); ok { // a token, or the hash of the body
			anew.URL = "https://app.example/in?" + query
		} else {
			anew.URL = "https://app.example/in"
		}
		one(t, app(t, s, otherSecretFor(s)), anew)
		reason(t, app(t, s, secretFor(s)), anew)
	})
}

// TestNobodyVouched: what no signature vouched for is not signed.
func TestNobodyVouched(t *testing.T) {
	testskip.Race(t)
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		for _, to := range []spec.Receiver{{}, {Secret: otherSecretFor(s)}} {
			r, err := p.Resigner(to)
			if err != nil {
				continue
			}
			header, body := s.Sample(spec.Sample{ID: "101", Time: now})
			req := &hookonce.Request{Method: http.MethodPost, URL: appURL, Header: header, Body: body, Now: now}
			want := &hookonce.Request{Method: http.MethodPost, URL: appURL, Header: header.Clone(), Body: bytes.Clone(body), Now: now}
			if err := r.Sign(req, 0); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, req); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// TestAnotherSendersEvents: what was verified for the sender that the source had before is not signed as one of the
// sender that it has now.
func TestAnotherSendersEvents(t *testing.T) {
	github := GitHub("fake-github-secret")
	header, body := github.Spec().Sample(spec.Sample{ID: "101", Time: now})
	before := &hookonce.Request{Method: http.MethodPost, URL: appURL, Header: header, Body: body, Now: now}
	if err := github.Sign(before); err != nil {
		t.Fatal(err)
	}
	delivery, err := github.Open(before)
	if err != nil || delivery.Proof.Vouched == 0 {
		t.Fatal(delivery, err)
	}
	for _, to := range []spec.Receiver{{}, {Secret: "whsec_fake_app"}} {
		r, err := Stripe("whsec_fake").Resigner(to)
		if err != nil {
			t.Fatal(err)
		}
		req := *before
		req.Header = before.Header.Clone()
		if err := r.Sign(&req, delivery.Proof.Vouched); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, &req); diff != "" {
			t.Error(diff)
		}
	}
}

// TestWhichSecretSigns: all that are valid where the scheme carries several signatures, else the one that verified
// the event, or the newest when that has ended or is gone.
func TestWhichSecretSigns(t *testing.T) {
	const old, current, next = "fake-old-secret", "fake-current-secret", "fake-next-secret"
	week := now.Add(7 * day)
	at := func(text string, from, until time.Time) spec.Secret {
		return spec.Secret{Text: text, From: from, Until: until}
	}
	always := func(texts ...string) []spec.Secret { return spec.Secrets(texts...) }
	for _, c := range []struct {
		name          string
		secrets       []spec.Secret // at delivery
		several, only []string      // who accepts where there may be several signatures, and where there is one
	}{
		{"the one that verified", always(current, old), []string{current, old}, []string{old}},
		{"in another order", always(old, next, current), []string{current, old, next}, []string{old}},
		{"it is gone", always(current), []string{current}, []string{current}},
		{"it has ended", []spec.Secret{at(old, time.Time{}, now.Add(day)), at(current, now, time.Time{})}, []string{current}, []string{current}},
		{"it is gone, and the newest is not the first", []spec.Secret{at(current, time.Time{}, time.Time{}), at(next, now.Add(day), time.Time{})},
			[]string{current, next}, []string{next}},
		{"the next one is not valid yet", []spec.Secret{at(old, time.Time{}, time.Time{}), at(next, week.Add(day), time.Time{})}, []string{old}, []string{old}},
		{"all have ended", []spec.Secret{at(current, time.Time{}, now), at(old, time.Time{}, now.Add(day))}, []string{old}, []string{old}},
	} {
		for name, want := range map[string][]string{"stripe": c.several, "paddle": c.several, "slack": c.only, "zoom": c.only, "gitlab": c.only} {
			s, err := Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			before := app(t, s, current, old) // as it was when the event came
			req := sent(t, app(t, s, old), "101", "")
			d, err := before.Open(req)
			if err != nil {
				t.Fatal(err)
			}
			anew := passedOn(before, req, &d.Events[0], 7*day)
			if err := resigner(t, fakeWith(t, s, c.secrets...), spec.Receiver{}).Sign(anew, d.Proof.Vouched); err != nil {
				t.Fatal(err)
			}
			var accepted []string
			for _, text := range []string{current, old, next} {
				if _, err := app(t, s, text).Open(anew); err == nil {
					accepted = append(accepted, text)
				}
			}
			slices.Sort(want)
			slices.Sort(accepted)
			if !slices.Equal(accepted, want) {
				t.Errorf("%s, %s: accepted with %q, want %q", c.name, name, accepted, want)
			}
		}
	}
}

// TestEverySignatureThatCame: who sends the headers of both names has both made anew, unless one of them says what the
// other did not vouch for; a public key's can only be replaced by that of a receiver's secret.
func TestEverySignatureThatCame(t *testing.T) {
	p, stranger := fake(t, "svix"), fake(t, "standard")
	secret := secretFor(p.Spec())
	names := func(req *hookonce.Request, id string) *hookonce.Request {
		req.Header.Set("webhook-id", id)
		if err := stranger.Sign(req); err != nil {
			t.Fatal(err)
		}
		return req
	}
	for _, c := range []struct {
		id   string
		anew bool
	}{{"101", true}, {"102", false}} {
		req := names(sent(t, p, "101", ""), c.id)
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		late := passedOn(p, req, &d.Events[0], 7*day)
		if err := resigner(t, p, spec.Receiver{}).Sign(late, d.Proof.Vouched); err != nil {
			t.Fatal(err)
		}
		one(t, Svix(secret), late)
		late.Header.Del("svix-signature")
		if _, err := Standard(secret).Open(late); (err == nil) != c.anew {
			t.Errorf("webhook-id %s beside svix-id 101: %v", c.id, err)
		}
	}
}

// TestATokenVouchesForNoSignature: who knows the token alone, and adds the header of the other way of signing, gets no
// signature over the content.
func TestATokenVouchesForNoSignature(t *testing.T) {
	p := fake(t, "shippo")
	secret := secretFor(p.Spec())
	header, body := p.Spec().Sample(spec.Sample{ID: "101", Time: now})
	header.Set("Shippo-Auth-Signature", "t=1,v1="+strings.Repeat("0", 64))
	req := &hookonce.Request{Method: http.MethodPost, URL: "https://hooks.example/in?token=" + secret, Header: header, Body: body, Now: now}
	d, err := p.Open(req)
	if err != nil || d.Proof.Vouched == 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	late := passedOn(p, req, &d.Events[0], 7*day)
	if err := resigner(t, p, spec.Receiver{}).Sign(late, d.Proof.Vouched); err != nil {
		t.Fatal(err)
	}
	for _, to := range []spec.Receiver{{}, {Secret: otherSecretFor(p.Spec())}} {
		rotated := passedOn(p, req, &d.Events[0], 7*day)
		if err := resigner(t, app(t, p.Spec(), "fake-next-secret"), to).Sign(rotated, d.Proof.Vouched); err != nil {
			t.Fatal(err)
		}
		if got := rotated.Header.Get("Shippo-Auth-Signature"); got != header.Get("Shippo-Auth-Signature") {
			t.Errorf("after the token was replaced it is signed: %s", got)
		}
	}
	if !strings.HasSuffix(late.URL, "token="+secret) || late.Header.Get("Shippo-Auth-Signature") != header.Get("Shippo-Auth-Signature") {
		t.Errorf("it goes to %s with %v", late.URL, late.Header)
	}
}

// TestTokensStandInTheURL: a token in the query of the provider's URL is put into that of the application.
func TestTokensStandInTheURL(t *testing.T) {
	p := fake(t, "mollie-classic")
	req := sent(t, p, "101", "")
	d, err := p.Open(req)
	if err != nil {
		t.Fatal(err)
	}
	anew := passedOn(p, req, &d.Events[0], 0)
	anew.URL = "https://app.internal/?token=old&team=shop"
	if err := resigner(t, p, spec.Receiver{}).Sign(anew, d.Proof.Vouched); err != nil {
		t.Fatal(err)
	}
	if want := "https://app.internal/?team=shop&token=" + secretFor(p.Spec()); anew.URL != want {
		t.Errorf("it goes to %s, want %s", anew.URL, want)
	}
}

// TestSignLeavesWhatItCannotSign: an error changes nothing.
func TestSignLeavesWhatItCannotSign(t *testing.T) {
	p := fake(t, "standard")
	req := sent(t, p, "101", "")
	d, err := p.Open(req)
	if err != nil {
		t.Fatal(err)
	}
	anew := passedOn(p, req, &d.Events[0], day)
	anew.Header.Del("webhook-id")
	want := anew.Header.Clone()
	if err := resigner(t, p, spec.Receiver{}).Sign(anew, d.Proof.Vouched); err == nil || !strings.Contains(err.Error(), "Webhook-Id") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(want, anew.Header); diff != "" {
		t.Error(diff)
	}
}

// TestSignHalfway: an error after the time was written changes nothing either.
func TestSignHalfway(t *testing.T) {
	s, _ := Lookup("hmac")
	s.Verify = []spec.Verify{{
		Kind: spec.HMAC, Signature: spec.Signature{In: "header:X-Signature"}, Time: &spec.Timestamp{In: "header:X-Time", Unit: spec.Seconds},
		Sign: []spec.Value{"ts", "const:.", "header:X-Account", "const:.", "body"},
	}}
	p := app(t, s, secretFor(s))
	header, body := s.Sample(spec.Sample{ID: "101", Time: now})
	req := &hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: now}
	req.Header.Set("X-Account", "1")
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(req)
	if err != nil {
		t.Fatal(err)
	}
	late := passedOn(p, req, &d.Events[0], day)
	late.Header["X-Account"] = []string{"1", "2"}
	want := late.Header.Clone()
	if err := resigner(t, p, spec.Receiver{}).Sign(late, d.Proof.Vouched); err == nil {
		t.Error("it was signed")
	}
	if diff := cmp.Diff(want, late.Header); diff != "" {
		t.Error(diff)
	}
}

// TestPublicKeysGiveWayToTheReceiversSecret: what was signed with a private key is passed on as it came, and signed with
// the receiver's secret if it has one, under the same identifier.
func TestPublicKeysGiveWayToTheReceiversSecret(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := Lookup("standard")
	p := app(t, s, "whpk_"+base64.StdEncoding.EncodeToString(public))
	if renewal, why := p.Renewal(); renewal != spec.Fixed || why == "" {
		t.Errorf("%s, because %q", renewal, why)
	}
	header, body := s.Sample(spec.Sample{ID: "101", Time: now})
	stamp := strconv.FormatInt(now.Unix(), 10)
	header.Set("webhook-timestamp", stamp)
	signature := ed25519.Sign(private, []byte("101."+stamp+"."+string(body)))
	header.Set("webhook-signature", "v1a,"+base64.StdEncoding.EncodeToString(signature))
	req := &hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: now}
	d, err := p.Open(req)
	if err != nil || d.Proof.Vouched == 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	late := passedOn(p, req, &d.Events[0], 7*day)
	if err := resigner(t, p, spec.Receiver{}).Sign(late, d.Proof.Vouched); err != nil || late.Header.Get("webhook-signature") != header.Get("webhook-signature") {
		t.Errorf("%v, %v", late.Header, err)
	}
	both := app(t, s, secretFor(s), "whpk_"+base64.StdEncoding.EncodeToString(public))
	if err := resigner(t, both, spec.Receiver{}).Sign(late, d.Proof.Vouched); err != nil || late.Header.Get("webhook-signature") != header.Get("webhook-signature") {
		t.Errorf("beside a shared secret: %v, %v", late.Header, err)
	}
	if err := resigner(t, p, spec.Receiver{Secret: secretFor(s)}).Sign(late, d.Proof.Vouched); err != nil {
		t.Fatal(err)
	}
	if ev := one(t, Standard(secretFor(s)), late); ev.Key != "101" {
		t.Errorf("key %q", ev.Key)
	}
}

// FuzzResign has every provider with a shared secret sign arbitrary bodies. What the gateway accepts, an application
// accepts a week later, at another URL and event by event, under the same key and with the same secret only.
func FuzzResign(f *testing.F) {
	testskip.Race(f)
	all := slices.DeleteFunc(everywhere(f), func(p *spec.Provider) bool { renewal, _ := p.Renewal(); return renewal == spec.Fixed })
	type receiver struct {
		by        *spec.Resigner
		is, isNot *spec.Provider
	}
	receivers := map[string]receiver{}
	for _, p := range all {
		s := p.Spec()
		receivers[p.Name()] = receiver{resigner(f, p, spec.Receiver{}), app(f, s, secretFor(s)), app(f, s, otherSecretFor(s))}
		header, body := s.Sample(spec.Sample{ID: "id_1", Time: now})
		f.Add("X-Fuzz", "x", header.Get("Content-Type"), body, uint32(7*24*3600))
	}
	for _, body := range []string{"", "{}", "[]", "[1,2]", `[{"id":1},{"id":1}]`, `{"events":[{"id":"a"},{"id":"b"}]}`, `{"webhookTimestamp":1,"webhookTimestamp":2}`, "a=b&c=d", "a&b"} {
		f.Add("Webhook-Id", "x", "application/json", []byte(body), uint32(3600))
		f.Add("Svix-Signature", "v1,AAAA", "application/x-www-form-urlencoded", []byte(body), uint32(0))
	}
	f.Fuzz(func(t *testing.T, name, text, contentType string, body []byte, late uint32) {
		for _, p := range all {
			to := receivers[p.Name()]
			req := &hookonce.Request{URL: "https://shop.example/in", Header: http.Header{"Content-Type": {contentType}}, Body: bytes.Clone(body), Now: now}
			req.Header.Set(name, text)
			if id, ok := strings.CutPrefix(string(p.Spec().Verify[0].ID), "header:"); ok {
				req.Header.Set(id, "msg_1")
			}
			if p.Sign(req) != nil {
				continue
			}
			d, err := p.Open(req)
			if err != nil || d.Handshake != nil {
				continue // FuzzOpen says when that may be
			}
			for i := range min(len(d.Events), 3) {
				ev := &d.Events[i]
				anew := passedOn(p, req, ev, time.Duration(late)*time.Second)
				if err := to.by.Sign(anew, d.Proof.Vouched); err != nil {
					t.Fatalf("%s: %v", p.Name(), err)
				}
				got, err := to.is.Open(anew)
				if err != nil {
					t.Fatalf("%s: %v\n%v\n%q", p.Name(), err, anew.Header, anew.Body)
				}
				if len(got.Events) == 0 || got.Events[0].Key != ev.Key {
					t.Fatalf("%s: the key was %q: %+v", p.Name(), ev.Key, got.Events)
				}
				if _, err := to.isNot.Open(anew); err == nil {
					t.Fatalf("%s: it is accepted with any secret", p.Name())
				}
			}
		}
	})
}
