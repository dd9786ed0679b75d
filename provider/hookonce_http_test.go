package provider

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/provider/spec"
)

// gatewayURL is what the gateway of the tests calls.
const gatewayURL = "https://shop.example/hooks?tenant=1"

// httpDelivered returns a delivery to [gatewayURL] that is signed with the private keys.
func httpDelivered(t *testing.T, id string, keys ...string) *hookonce.Request {
	t.Helper()
	p := HookonceHTTP(HookonceHTTPConfig{Keys: keys, AsSender: true})
	header, body := p.Spec().Sample(spec.Sample{ID: id, Version: 3, Time: now})
	req := &hookonce.Request{Method: http.MethodPost, URL: gatewayURL, Header: header, Body: body, Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// Whatever key the gateway signs with, the application finds in the event what it finds in one that is signed otherwise.
func TestHookonceHTTPVerifies(t *testing.T) {
	for _, pair := range httpsigtest.Pairs() {
		t.Run(string(pair.Algorithm), func(t *testing.T) {
			d, err := HookonceHTTP(HookonceHTTPConfig{Keys: []string{pair.Public}}).Open(httpDelivered(t, "evt_1", pair.Private))
			if err != nil || len(d.Events) != 1 || d.Proof != (hookonce.Proof{Covers: "body", Secret: 1}) {
				t.Fatalf("%+v, %v", d, err)
			}
			other, err := Hookonce(gatewaySecret).Open(delivered(t, "evt_1", gatewaySecret))
			if err != nil {
				t.Fatal(err)
			}
			got, want := d.Events[0], other.Events[0]
			got.Header, want.Header = nil, nil
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("%+v\nwant %+v", got, want)
			}
		})
	}
}

// A public key that is not in PEM is refused, and not taken for a shared secret: everybody could sign with it, while genuine
// deliveries pass by the key beside it.
func TestHookonceHTTPTakesNoPublicKeyForASecret(t *testing.T) {
	refused := func(keys ...string) (why string) {
		defer func() {
			if r := recover(); r != nil {
				why = fmt.Sprint(r)
			}
		}()
		HookonceHTTP(HookonceHTTPConfig{Keys: keys})
		return ""
	}
	for _, pair := range httpsigtest.Pairs() {
		if pair.Algorithm == httpsig.HMACSHA256 {
			continue
		}
		block, _ := pem.Decode([]byte(pair.Public))
		digits := base64.StdEncoding.EncodeToString(block.Bytes)
		for name, text := range map[string]string{
			"the digits of its PEM":       digits,
			"them without padding":        strings.TrimRight(digits, "="),
			"them in lines":               digits[:20] + "\n" + digits[20:],
			"in hexadecimal digits":       hex.EncodeToString(block.Bytes),
			"PEM below a comment":         "# key of the gateway\n" + pair.Public,
			"PEM after a byte order mark": "\ufeff" + pair.Public,
			"PEM in quotes":               `"` + pair.Public + `"`,
			"JSON Web Key":                `{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`,
			"line of OpenSSH":             "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA gateway",
		} {
			if why := refused(pair.Public, text); !strings.Contains(why, "key 2 of 2") || strings.Contains(why, digits) {
				t.Errorf("%s, %s: %q", pair.Algorithm, name, why)
			}
		}
	}
	if why := refused("fifteen bytes.."); !strings.Contains(why, "shorter than 16 bytes") {
		t.Errorf("a short secret: %q", why)
	}
}

// Whoever carries a delivery can change nothing that is covered, nor add what the application would go by.
func TestHookonceHTTPRefusesForgeries(t *testing.T) {
	ed := httpsigtest.Of(httpsig.Ed25519)
	p := HookonceHTTP(HookonceHTTPConfig{Keys: []string{ed.Public}})
	change := func(name, from, to string) func(*hookonce.Request) {
		return func(r *hookonce.Request) { r.Header.Set(name, strings.Replace(r.Header.Get(name), from, to, 1)) }
	}
	for name, c := range map[string]struct {
		forge  func(r *hookonce.Request)
		reason string
	}{
		"another method": {func(r *hookonce.Request) { r.Method = http.MethodPut }, hookonce.ReasonSignatureMismatch},
		"another host":   {func(r *hookonce.Request) { r.URL = "https://other.example/hooks?tenant=1" }, hookonce.ReasonSignatureMismatch},
		"another path":   {func(r *hookonce.Request) { r.URL = "https://shop.example/hook?tenant=1" }, hookonce.ReasonSignatureMismatch},
		"another query":  {func(r *hookonce.Request) { r.URL = "https://shop.example/hooks?tenant=2" }, hookonce.ReasonSignatureMismatch},
		"no query":       {func(r *hookonce.Request) { r.URL = "https://shop.example/hooks" }, hookonce.ReasonSignatureMismatch},
		"another body":   {func(r *hookonce.Request) { r.Body = append(r.Body, ' ') }, hookonce.ReasonSignatureMismatch},
		"another digest": {func(r *hookonce.Request) { r.Header.Set("Content-Digest", httpsig.Digest([]byte("{}"))) }, hookonce.ReasonSignatureMismatch},
		"body and digest": {func(r *hookonce.Request) {
			r.Body = []byte("{}")
			r.Header.Set("Content-Digest", httpsig.Digest(r.Body))
		}, hookonce.ReasonSignatureMismatch},
		"another type":        {func(r *hookonce.Request) { r.Header.Set("Content-Type", "text/plain") }, hookonce.ReasonSignatureMismatch},
		"another key":         {func(r *hookonce.Request) { r.Header.Set("Hookonce-Key", "evt_2") }, hookonce.ReasonSignatureMismatch},
		"another idempotency": {func(r *hookonce.Request) { r.Header.Set("Idempotency-Key", "billing:evt_2") }, hookonce.ReasonSignatureMismatch},
		"no key":              {func(r *hookonce.Request) { r.Header.Del("Hookonce-Key") }, hookonce.ReasonSignatureMalformed},
		"said twice":          {func(r *hookonce.Request) { r.Header.Add("Hookonce-Key", "evt_2") }, hookonce.ReasonSignatureMismatch},
		"something more":      {func(r *hookonce.Request) { r.Header.Set("Hookonce-Forced", "true") }, hookonce.ReasonSignatureMalformed},
		"a later time":        {change("Signature-Input", "created=17", "created=27"), hookonce.ReasonSignatureMismatch},
		"good for longer":     {change("Signature-Input", "expires=17", "expires=27"), hookonce.ReasonSignatureMismatch},
		"another keyid":       {change("Signature-Input", `alg="ed25519"`, `alg="ed25519";keyid="k"`), hookonce.ReasonSignatureMismatch},
		"less is covered":     {change("Signature-Input", ` "hookonce-key"`, ""), hookonce.ReasonSignatureMismatch},
		"six minutes later":   {func(r *hookonce.Request) { r.Now = now.Add(6 * time.Minute) }, hookonce.ReasonTimestampOld},
		"another body, later": {func(r *hookonce.Request) { r.Now, r.Body = now.Add(6*time.Minute), append(r.Body, ' ') }, hookonce.ReasonSignatureMismatch},
		"six minutes early":   {func(r *hookonce.Request) { r.Now = now.Add(-6 * time.Minute) }, hookonce.ReasonTimestampFuture},
		"no signature":        {func(r *hookonce.Request) { r.Header.Del("Signature") }, hookonce.ReasonSignatureMissing},
		"no input":            {func(r *hookonce.Request) { r.Header.Del("Signature-Input") }, hookonce.ReasonSignatureMissing},
		"no digest":           {func(r *hookonce.Request) { r.Header.Del("Content-Digest") }, hookonce.ReasonSignatureMissing},
		"no label":            {func(r *hookonce.Request) { r.Header.Set("Signature", "::") }, hookonce.ReasonSignatureMalformed},
		"the key of another": {func(r *hookonce.Request) {
			*r = *httpDelivered(t, "evt_1", httpsigtest.Of(httpsig.ECDSAP256SHA256).Private)
		}, hookonce.ReasonSignatureMismatch},
		"an encoding is added": {func(r *hookonce.Request) { r.Header.Set("Content-Encoding", "gzip") }, hookonce.ReasonSignatureMalformed},
		"a stranger's covers more": {func(r *hookonce.Request) {
			r.Header.Set("Hookonce-Forced", "true")
			r.Header.Set("Signature-Input", r.Header.Get("Signature-Input")+`, z=("hookonce-forced");created=1`)
			r.Header.Set("Signature", r.Header.Get("Signature")+", z=:AAAA:")
		}, hookonce.ReasonSignatureMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			req := httpDelivered(t, "evt_1", ed.Private)
			if _, err := p.Open(req); err != nil {
				t.Fatal(err)
			}
			c.forge(req)
			d, err := p.Open(req)
			var rej *hookonce.RejectError
			if !errors.As(err, &rej) || d != nil || rej.Reason != c.reason {
				t.Errorf("%v, %v; want %s", d, err, c.reason)
			}
		})
	}
}

// What a signature says of itself counts, whoever made it: a gateway's says when it was made and until when it is good,
// and each of the two is enough to refuse it.
func TestHookonceHTTPHeedsTheParameters(t *testing.T) {
	ed := httpsigtest.Of(httpsig.Ed25519)
	p := HookonceHTTP(HookonceHTTPConfig{Keys: []string{ed.Public}})
	key, err := httpsig.SigningKey("", ed.Private)
	if err != nil {
		t.Fatal(err)
	}
	alg := string(key.Algorithm)
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, c := range map[string]struct {
		params httpsig.Params
		reason string // empty: it is good
	}{
		"nothing but when":         {httpsig.Params{Created: at(0)}, ""},
		"all":                      {httpsig.Params{Created: at(-4 * time.Minute), Expires: at(time.Second), Alg: alg}, ""},
		"old, and never expires":   {httpsig.Params{Created: at(-6 * time.Minute), Alg: alg}, hookonce.ReasonTimestampOld},
		"old, and still good":      {httpsig.Params{Created: at(-6 * time.Minute), Expires: at(time.Hour), Alg: alg}, hookonce.ReasonTimestampOld},
		"expired, and not old":     {httpsig.Params{Created: at(-time.Minute), Expires: at(-time.Second), Alg: alg}, hookonce.ReasonTimestampOld},
		"another algorithm":        {httpsig.Params{Created: at(0), Alg: string(httpsig.ECDSAP256SHA256)}, hookonce.ReasonSignatureMismatch},
		"an algorithm that is not": {httpsig.Params{Created: at(0), Alg: "none"}, hookonce.ReasonSignatureMismatch},
		"no time":                  {httpsig.Params{Alg: alg}, hookonce.ReasonTimestampMissing},
		"until when alone":         {httpsig.Params{Expires: at(time.Minute), Alg: alg}, hookonce.ReasonTimestampMissing},
	} {
		req := httpDelivered(t, "evt_1", ed.Private)
		covered := append([]string{"@method", "@target-uri", "content-digest"}, outgoing.HTTPHeaders(req.Header)...)
		s, err := httpsig.New("sig1", covered, c.params)
		if err != nil {
			t.Fatal(err)
		}
		base, err := s.Base(&httpsig.Request{Method: req.Method, URL: req.URL, Header: req.Header})
		if err != nil {
			t.Fatal(err)
		}
		signature, err := key.Sign(base)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Signature-Input", s.Input())
		req.Header.Set("Signature", s.Field(signature))
		d, err := p.Open(req)
		if c.reason == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var rej *hookonce.RejectError
		if !errors.As(err, &rej) || d != nil || rej.Reason != c.reason {
			t.Errorf("%s: %v, %v; want %s", name, d, err, c.reason)
		}
	}
}

// While a key is replaced either side may know one of them or both.
func TestHookonceHTTPRotates(t *testing.T) {
	old, next := httpsigtest.Of(httpsig.Ed25519), httpsigtest.Of(httpsig.ECDSAP384SHA384)
	for _, c := range []struct {
		signed, known []string
		secret        int
	}{
		{[]string{old.Private}, []string{old.Public}, 1},
		{[]string{old.Private, next.Private}, []string{old.Public}, 1},
		{[]string{old.Private, next.Private}, []string{next.Public}, 1},
		{[]string{next.Private}, []string{old.Public, next.Public}, 2},
	} {
		d, err := HookonceHTTP(HookonceHTTPConfig{Keys: c.known}).Open(httpDelivered(t, "evt_1", c.signed...))
		if err != nil || d.Proof.Secret != c.secret {
			t.Errorf("signed with %d, known %d: %+v, %v", len(c.signed), len(c.known), d, err)
		}
	}
}

// Behind a proxy that changes host or path the application says what the gateway calls; the scheme does not matter.
func TestHookonceHTTPBehindAProxy(t *testing.T) {
	ed := httpsigtest.Of(httpsig.Ed25519)
	for _, c := range []struct {
		configured, seen string
		good             bool
	}{
		{"", "http://shop.example/hooks?tenant=1", true},
		{"", "http://10.0.0.7:3000/hooks?tenant=1", false},
		{"https://shop.example/hooks", "http://10.0.0.7:3000/inner?tenant=1", true},
		{"https://shop.example/hooks?tenant=9", "http://10.0.0.7:3000/inner?tenant=1", true},
		{"https://shop.example/hooks?tenant=1", "http://10.0.0.7:3000/inner?tenant=2", false},
		{"https://shop.example/hook", "http://shop.example/hooks?tenant=1", false},
	} {
		req := httpDelivered(t, "evt_1", ed.Private)
		req.URL = c.seen
		if _, err := HookonceHTTP(HookonceHTTPConfig{Keys: []string{ed.Public}, URL: c.configured}).Open(req); (err == nil) != c.good {
			t.Errorf("%q seen as %s: %v", c.configured, c.seen, err)
		}
	}
}

func TestHookonceHTTPWantsKeys(t *testing.T) {
	ed := httpsigtest.Of(httpsig.Ed25519)
	for want, c := range map[string]HookonceHTTPConfig{
		"no key is given":           {},
		"key 2 of 2 is empty":       {Keys: []string{ed.Public, ""}},
		"belongs to the sender":     {Keys: []string{ed.Private}},
		"taken byte for byte":       {Keys: []string{"whsec_ZmFrZQ=="}},
		"URL: the address must":     {Keys: []string{ed.Public}, URL: "shop.example"},
		"URL: the host has letters": {Keys: []string{ed.Public}, URL: "https://bücher.example"},
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "provider hookonce") || !strings.Contains(said, want) {
					t.Errorf("%s; want %s", said, want)
				}
			}()
			HookonceHTTP(c)
		}()
	}
	p := HookonceHTTP(HookonceHTTPConfig{Keys: []string{ed.Public}})
	if err := p.Sign(httpDelivered(t, "evt_1", ed.Private)); err == nil || !strings.Contains(err.Error(), "AsSender") {
		t.Errorf("it signs with a public key: %v", err)
	}
	c := HookonceHTTPConfig{Keys: []string{"fake"}, URL: "https://shop.example/?token=fake"}
	if text := fmt.Sprintf("%v %+v %#v %v %#v", c, c, c, p, p); strings.Contains(text, "fake") || strings.Contains(text, "PUBLIC") {
		t.Errorf("it prints %s", text)
	}
}

// TestHTTPSignatureAsSender: with a private key of one's own requests are signed as any sender of that kind does, and the
// endpoint, which has the public one, takes them.
func TestHTTPSignatureAsSender(t *testing.T) {
	for _, pair := range httpsigtest.Pairs() {
		if pair.Algorithm == httpsig.RSAv15SHA256 {
			continue // not among what HTTPSignature takes
		}
		sender := HTTPSignature(HTTPSignatureConfig{Secrets: []string{pair.Private}, URL: gatewayURL, AsSender: true})
		header, body := sender.Spec().Sample(spec.Sample{ID: "evt_1", Time: now})
		req := &hookonce.Request{Method: http.MethodPost, URL: gatewayURL, Header: header, Body: body, Now: now}
		if err := sender.Sign(req); err != nil {
			t.Fatal(err)
		}
		d, err := HTTPSignature(HTTPSignatureConfig{Secrets: []string{pair.Public}, URL: gatewayURL}).Open(req)
		if err != nil || d.Events[0].Key != "evt_1" || !d.Events[0].KeySigned {
			t.Errorf("%s: %+v, %v", pair.Algorithm, d, err)
		}
	}
	_, err := Build("http-signature", spec.Settings{Secrets: spec.Secrets(httpsigtest.Of(httpsig.Ed25519).Private)})
	if !errors.Is(err, spec.ErrSecret) || !strings.Contains(err.Error(), "belongs to the sender alone") {
		t.Errorf("an endpoint takes a private key: %v", err)
	}
}

func FuzzHookonceHTTP(f *testing.F) {
	f.Add("Signature-Input", `sig1=();created=1`)
	f.Add("Signature", "sig1=:AAAA:")
	f.Add("Content-Digest", "sha-256=:AAAA:")
	f.Add("Hookonce-Rank", "version:3")
	p := HookonceHTTP(HookonceHTTPConfig{Keys: []string{httpsigtest.Secret}})
	f.Fuzz(func(t *testing.T, name, value string) {
		req := httpDelivered(t, "evt_1", httpsigtest.Secret)
		before := req.Header.Get(name)
		req.Header.Set(name, value)
		d, err := p.Open(req)
		if err != nil && !errors.Is(err, hookonce.ErrUnverified) {
			t.Fatalf("%q: %q: %v", name, value, err)
		}
		if err == nil && before != strings.Trim(value, " \t") && strings.HasPrefix(http.CanonicalHeaderKey(name), "Hookonce-") && http.CanonicalHeaderKey(name) != "Hookonce-Signature" {
			t.Fatalf("%q: %q is believed: %+v", name, value, d)
		}
	})
}
