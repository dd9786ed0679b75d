package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// sentBy runs the command and returns its exit status and all that it wrote.
func sentBy(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var text bytes.Buffer
	w := &env{
		args: append([]string{"hookonce", "send"}, args...), environ: []string{"SENT_SECRET=" + fakeSecret},
		in: strings.NewReader(""), out: &text, err: &text,
	}
	return execute(w), text.String()
}

// What send signs is verified, and its copies are recognised, for every provider whose signature can be
// imitated. The others are refused before anything is asked of the user that would be of no use.
func TestSendProviders(t *testing.T) {
	for _, name := range provider.Names() {
		known, _ := provider.Lookup(name)
		t.Run(name, func(t *testing.T) {
			if !known.Imitable() {
				status, out := sentBy(t, "--provider", name, "--to", "http://127.0.0.1:1/")
				if status != exitUsage || !strings.Contains(out, known.Title+" signs with a private key that only it has") {
					t.Errorf("status %d: %s", status, out)
				}
				return
			}
			secret := secretFor(known)
			p, err := spec.New(known, spec.Settings{Secrets: spec.Secrets(secret), URL: "https://shop.example/hooks"})
			if err != nil {
				t.Fatal(err)
			}
			events := 0
			url := endpoint(t, hookonce.Webhook(memstore.New(), p.Name(), p,
				func(context.Context, *memstore.Tx, *hookonce.Event) error { events++; return nil },
				hookonce.WithLogger(slog.New(slog.DiscardHandler))))
			status, out := sentBy(t, "--provider", name, "--secret", secret, "--to", url, "--signed-url", "https://shop.example/hooks",
				"--id", "first", "--copies", "2")
			want := 1
			if len(known.Event.Key) == 0 || known.Dedup.OnRepeat == spec.Coalesce {
				want = 2
			}
			if status != exitOK || events != want {
				t.Errorf("status %d, handled %d times, want %d\n%s", status, events, want, out)
			}
		})
	}
}

func TestSendRefuses(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	nowhere := "http://127.0.0.1:1/"
	tests := map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no URL":              {nil, exitUsage, "the URL is missing"},
		"two URLs":            {[]string{"http://a", "--to", "http://b"}, exitUsage, "keep one"},
		"no scheme":           {[]string{"localhost:80?token=SECRET"}, exitUsage, `"localhost:80" must start with http:// or https://`},
		"another scheme":      {[]string{"ftp://a/?token=SECRET"}, exitUsage, `"ftp://a/" must start with http:// or https://`},
		"malformed URL":       {[]string{"http://a b/?token=SECRET"}, exitUsage, "invalid character"},
		"password in the URL": {[]string{"http://u:SECRET@a/"}, exitUsage, "Authorization header"},
		"unknown provider":    {[]string{nowhere, "--provider", "strpe"}, exitUsage, `did you mean "stripe"?`},
		"provider and spec":   {[]string{nowhere, "--provider", "stripe", "--spec", "a.yaml"}, exitUsage, "exclude each other"},
		"no such spec":        {[]string{nowhere, "--spec", "/no/such/file"}, exitUsage, "no such file"},
		"spec without example": {[]string{nowhere, "--secret", "SECRET", "--spec",
			writeFile(t, "name: acme\nverify: [{signature: {in: header:X-Sig}, sign: [body]}]\nevent: {key: [[json:$.id]]}\n")},
			exitUsage, "acme has no example to send; give one with --body"},
		"unsafe spec":       {[]string{nowhere, "--secret", "SECRET", "--body", writeFile(t, "{}"), "--spec", writeFile(t, "name: acme\nverify: [{signature: {in: header:X-Sig}}]\n")}, exitUsage, "sign: is missing"},
		"no secret":         {[]string{nowhere, "--provider", "stripe"}, exitUsage, "--secret is missing"},
		"secret not there":  {[]string{nowhere, "--secret", "env:NOT_SET"}, exitUsage, "NOT_SET is not set"},
		"shell's variable":  {[]string{nowhere, "--secret", "$SECRET"}, exitUsage, "variable of a shell"},
		"white space":       {[]string{nowhere, "--provider", "stripe", "--secret", "SECRET "}, exitUsage, "begins or ends with white space"},
		"not base64":        {[]string{nowhere, "--secret", "whsec_SECRET!"}, exitUsage, "not base64 after whsec_; it needs the endpoint's signing secret"},
		"not hexadecimal":   {[]string{nowhere, "--provider", "adyen", "--secret", "SECRET"}, exitUsage, "not hexadecimal; it needs the webhook's HMAC key"},
		"not user:password": {[]string{nowhere, "--provider", "chargebee", "--secret", "SECRET"}, exitUsage, "not user:password"},
		"public key":        {[]string{nowhere, "--secret", "whpk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}, exitUsage, "private key that only it has"},
		"no such body":      {[]string{nowhere, "--secret", fakeSecret, "--body", "/no/such/file"}, exitUsage, "--body"},
		"bad header":        {[]string{nowhere, "--secret", fakeSecret, "-H", "no colon"}, exitUsage, "write 'Name: value'"},
		"no copies":         {[]string{nowhere, "--copies", "0"}, exitUsage, "--copies is 0"},
		"no time":           {[]string{nowhere, "--timeout", "0s"}, exitUsage, "--timeout is 0s"},
		"bad signed URL":    {[]string{nowhere, "--provider", "square", "--secret", "SECRET", "--signed-url", "nope"}, exitUsage, "not an absolute http or https URL"},
		"nobody listens":    {[]string{closed.URL + "/?token=SECRET", "--secret", fakeSecret}, exitFailure, "connection refused"},
		"token in the URL":  {[]string{closed.URL, "--provider", "mollie-classic", "--secret", "SECRET"}, exitFailure, "connection refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, out := sentBy(t, tt.args...)
			if status != tt.status || !strings.Contains(out, tt.says) {
				t.Errorf("status %d, want %d with %q\n%s", status, tt.status, tt.says, out)
			}
			if strings.Contains(out, "SECRET") || strings.Contains(out, fakeSecret) {
				t.Errorf("the secret is shown:\n%s", out)
			}
		})
	}
}

// An endpoint that answers anything but 2xx did not take the event. A redirect is such an answer, whatever
// is behind it.
func TestSendJudgesTheAnswer(t *testing.T) {
	taken := endpoint(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for status, want := range map[int]int{204: exitOK, 302: exitFailure, 307: exitFailure, 401: exitFailure, 503: exitFailure} {
		url := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", taken)
			w.WriteHeader(status)
		}))
		if got, out := sentBy(t, url, "--secret", "env:SENT_SECRET"); got != want {
			t.Errorf("answered %d: exit status %d, want %d\n%s", status, got, want, out)
		}
	}
}

// Whoever sends to another address than the registered one is told what to do.
func TestSendHintsAtTheSignedURL(t *testing.T) {
	url := endpoint(t, hookonce.Webhook(memstore.New(), "square", provider.Square("https://shop.example/hooks", "fake"),
		func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }, hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	status, out := sentBy(t, url, "--provider", "square", "--secret", "fake")
	if status != exitFailure || !strings.Contains(out, "Square signs its URL") {
		t.Errorf("status %d: %s", status, out)
	}
}

func TestSendGivesUp(t *testing.T) {
	release := make(chan struct{})
	url := endpoint(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer close(release)
	if status, out := sentBy(t, url, "--secret", fakeSecret, "--timeout", "1ms"); status != exitFailure || !strings.Contains(out, "the server did not answer within 1ms") {
		t.Errorf("status %d: %s", status, out)
	}
}

// A specification of one's own is enough to send as its sender, with a body and headers of one's own.
func TestSendOwnSpecification(t *testing.T) {
	text := "name: acme\nverify: [{signature: {in: header:X-Acme-Signature}, sign: [body]}]\nevent: {key: [[header:X-Acme-Id]], type: [json:$.type]}\n"
	known, err := specyaml.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.New(known, spec.Settings{Secrets: spec.Secrets("fake")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	url := endpoint(t, hookonce.Webhook(memstore.New(), p.Name(), p, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
		got = append(got, ev.Key+" "+ev.Type+" "+string(ev.Body))
		return nil
	}, hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	status, out := sentBy(t, "--spec", writeFile(t, text), "--secret", "fake", "--to", url, "--id", "7", "--copies", "2",
		"--body", writeFile(t, `{"type":"paid","n":"{{id}}"}`), "-H", "X-Acme-Id: id-{{id}}")
	if status != exitOK || len(got) != 1 || got[0] != `id-7 paid {"type":"paid","n":"7"}` {
		t.Errorf("status %d, handled %q\n%s", status, got, out)
	}
}

// TestSendWithAPrivateKeyOfOnesOwn: HTTP message signatures are made with it, and the endpoint has the public key.
func TestSendWithAPrivateKeyOfOnesOwn(t *testing.T) {
	for _, a := range []httpsig.Algorithm{httpsig.Ed25519, httpsig.ECDSAP256SHA256, httpsig.ECDSAP384SHA384, httpsig.RSAPSSSHA512} {
		pair := httpsigtest.Of(a)
		const address = "https://shop.example/hooks"
		p, err := provider.Build("http-signature", spec.Settings{Secrets: spec.Secrets(pair.Public), URL: address})
		if err != nil {
			t.Fatal(err)
		}
		events := 0
		url := endpoint(t, hookonce.Webhook(memstore.New(), "in", p, func(context.Context, *memstore.Tx, *hookonce.Event) error { events++; return nil },
			hookonce.WithLogger(slog.New(slog.DiscardHandler))))
		private := "file:" + writeFile(t, pair.Private)
		if status, out := sentBy(t, "--provider", "http-signature", "--secret", private, "--to", url, "--signed-url", address, "--copies", "2"); status != exitOK || events != 1 {
			t.Errorf("%s: status %d, %d events: %s", a, status, events, out)
		}
		if status, out, errs := hammered(t, url, "--provider", "http-signature", "--secret", private, "--signed-url", address, "--copies", "3", "--rounds", "1"); status != exitOK || events != 2 {
			t.Errorf("%s: hammer: status %d, %d events: %s%s", a, status, events, out, errs)
		}
	}
	public := "file:" + writeFile(t, httpsigtest.Of(httpsig.Ed25519).Public)
	if status, out := sentBy(t, "--provider", "http-signature", "--secret", public, "--to", "http://127.0.0.1:1/"); status != exitUsage || !strings.Contains(out, "nothing can be signed with one; give the private key") {
		t.Errorf("with the public key: status %d: %s", status, out)
	}
}

// Whoever mistakes the private key for the public one is told so, in whatever form it comes.
func TestVerifyNamesPrivateKeys(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	body := writeFile(t, "{}")
	for name, tt := range map[string]struct{ provider, secret string }{
		"SEC 1 in PEM":      {"wise", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}))},
		"PKCS #8 in PEM":    {"wise", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))},
		"PKCS #8 in base64": {"sendgrid", base64.StdEncoding.EncodeToString(pkcs8)},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			w := &env{
				args: []string{"hookonce", "verify", "--provider", tt.provider, "--secret", "file:" + writeFile(t, tt.secret), "--body", body},
				in:   strings.NewReader(""), out: &text, err: &text,
			}
			if status := execute(w); status != exitUsage || !strings.Contains(text.String(), "is a private key, which belongs to the sender alone; give the public key") {
				t.Errorf("status %d: %s", status, &text)
			}
		})
	}
}
