package diagnose_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/diagnose"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// schemes are those that every mistake is made with.
var schemes = []string{"stripe", "github", "standard", "twilio"}

// mistake is one that people make, with what they are to be told.
type mistake struct {
	name string
	// make breaks a genuine capture; by has other ways for some schemes.
	make func(*diagnose.Capture)
	by   map[string]func(*diagnose.Capture)
	// want is the text of the cause; wants has others for some schemes.
	want  string
	wants map[string]string
	word  diagnose.Word
	words map[string]diagnose.Word
	guess bool // nothing proves it
}

var mistakes = []mistake{
	{
		name: "a line break more", make: bodyIs(func(b []byte) []byte { return append(b, '\n') }),
		want: "the secret is right, but the body ends in a line break that the sender did not sign", word: diagnose.BodyLineBreak,
	},
	{
		name: "line endings changed", make: bodyIs(func(b []byte) []byte { return append(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")), "\r\n"...) }),
		want: "the secret is right, but the body ends in a line break that the sender did not sign", word: diagnose.BodyLineBreak,
		wants: map[string]string{"stripe": "the secret is right, but the body ends in a line break that the sender did not sign, and has the line endings CRLF where it wrote LF"},
	},
	{
		name: "a byte order mark", make: bodyIs(func(b []byte) []byte { return append([]byte("\ufeff"), b...) }),
		want: "the secret is right, but the body begins with a byte order mark, which an editor puts in front of it", word: diagnose.BodyMark,
	},
	{
		name: "through a parser", make: bodyIs(compacted), by: map[string]func(*diagnose.Capture){
			"github":   bodyIs(func(b []byte) []byte { var out bytes.Buffer; _ = json.Indent(&out, b, "", "    "); return out.Bytes() }),
			"standard": bodyIs(remarshalled), "twilio": parsedForm,
		},
		word: diagnose.BodyWrittenAnew, words: map[string]diagnose.Word{"twilio": diagnose.BodyParsed},
		wants: map[string]string{
			"stripe":   "the secret is right, but the body is JSON that was parsed and written anew: the sender wrote it with an indent of two spaces",
			"github":   "the secret is right, but the body is JSON that was parsed and written anew: the sender wrote it on one line without spaces",
			"standard": `the secret is right, but the body is JSON that was parsed and written anew: the sender wrote it on one line without spaces and with \/ for each slash, and \u for characters beyond ASCII`,
			"twilio":   "the secret is right, but the body is what a parser made of a form",
		},
	},
	{
		name: "no body", make: bodyIs(func([]byte) []byte { return nil }), guess: true,
		want: "the body is empty: something read it before it was captured, or it was not captured", word: diagnose.BodyEmpty,
	},
	{
		name: "the event of a function", make: bodyIs(func(b []byte) []byte {
			b, _ = json.Marshal(map[string]any{"isBase64Encoded": true, "body": base64.StdEncoding.EncodeToString(b)})
			return b
		}),
		want: "the secret is right, but the file holds the event of a cloud function, and the body is in its field body", word: diagnose.BodyWrapped,
	},
	{
		name: "the headers in the file", make: bodyIs(func(b []byte) []byte { return append([]byte("POST /in HTTP/1.1\r\nHost: shop.example\r\n\r\n"), b...) }),
		want: "the secret is right, but the file holds the whole request, with its headers before the body", word: diagnose.BodyWrapped,
	},
	{
		name: "quotes around the secret", make: secretIs(func(s string) string { return `"` + s + `"` }),
		want: "the secret has quotes around it", word: diagnose.SecretQuoted,
	},
	{
		name: "white space around the secret", make: secretIs(func(s string) string { return " " + s + "\n" }),
		want: "the secret has white space or a line break around it", word: diagnose.SecretSpaces,
	},
	{
		name: "a beginning lost, or too much", make: secretIs(func(s string) string { return "v1," + s }), by: map[string]func(*diagnose.Capture){
			"stripe": secretIs(func(s string) string { return strings.TrimPrefix(s, "whsec_") }), "github": secretIs(func(s string) string { return "whsec_" + s }),
			"standard": secretIs(func(s string) string { return "Bearer " + s }),
		},
		want: "the secret begins with v1,, which is not a part of it", word: diagnose.SecretPrefix, wants: map[string]string{
			"stripe": "the secret lacks its beginning whsec_", "github": "the secret begins with whsec_, which is not a part of it",
			"standard": "the secret begins with Bearer, which is not a part of it",
		},
	},
	{
		name: "a secret of Kubernetes", make: secretIs(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		want: "the secret was encoded in base64 once more", word: diagnose.SecretEncoding,
	},
	{
		name: "a key for something else", make: secretIs(func(string) string { return "sk_live_fakefakefakefakefake" }), by: map[string]func(*diagnose.Capture){
			"github": secretIs(func(string) string { return "ghp_fakefakefakefakefakefakefakefakefake" }), "twilio": secretIs(func(string) string { return "AC" + strings.Repeat("0f", 16) }),
		},
		guess: true, want: "the secret is an API key, as Stripe's are (sk_live_…), and that signs no webhooks", word: diagnose.SecretKind, wants: map[string]string{
			"github": "the secret is an access token of GitHub (ghp_…), and that signs no webhooks", "twilio": "the secret is an account SID of Twilio (AC…), and that signs no webhooks",
		},
	},
	{
		name: "a variable without env:", make: func(c *diagnose.Capture) {
			c.Environ = []string{"HOOKS=" + c.Settings.Secrets[0].Text}
			secretIs(func(string) string { return "HOOKS" })(c)
		},
		want: "the secret is the name of an environment variable, and its value is the right one", word: diagnose.SecretVariable,
	},
	{
		name: "a variable that is not set", make: secretIs(func(string) string { return "SHOP_WEBHOOK_SECRET" }), guess: true,
		want: "the secret looks like the name of a variable, and not like its value", word: diagnose.SecretVariable,
	},
	{
		name: "a placeholder", make: secretIs(func(string) string { return "whsec_your_secret_here" }), guess: true,
		want: "the secret is a placeholder, and everybody knows it", word: diagnose.SecretPlaceholder,
	},
	{
		name: "a public key", make: secretIs(func(string) string { return "-----BEGIN PUBLIC KEY-----\nZmFrZQ==\n-----END PUBLIC KEY-----" }), guess: true,
		want: "the secret is a key in PEM, and none is wanted", word: diagnose.SecretKind,
	},
	{
		name: "another provider", make: isOf("stripe", "github"), by: map[string]func(*diagnose.Capture){
			"github": isOf("github", "stripe"), "standard": isOf("standard", "shopify"), "twilio": isOf("twilio", "slack"),
		},
		word: diagnose.OtherProvider, wants: map[string]string{
			"stripe": "this is a request of GitHub", "github": "this is a request of Stripe", "standard": "this is a request of Shopify", "twilio": "this is a request of Slack",
		},
	},
	{
		name: "another provider with another secret", make: func(c *diagnose.Capture) {
			c.Request = genuine("shopify").Request
			if c.Spec.Name == "github" {
				secretIs(func(string) string { return "another-fake-secret" })(c)
			}
		},
		guess: true, word: diagnose.OtherProvider, wants: map[string]string{
			"stripe": "this looks like a request of Shopify, and not of Stripe", "github": "this looks like a request of Shopify, and not of GitHub",
			"standard": "this looks like a request of Shopify, and not of Standard Webhooks", "twilio": "this looks like a request of Shopify, and not of Twilio",
		},
	},
	{
		name: "headers as CGI has them", make: func(c *diagnose.Capture) {
			header := http.Header{}
			for name, values := range c.Request.Header {
				header["HTTP_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = values
			}
			c.Request.Header = header
		},
		word: diagnose.HeaderRenamed, wants: map[string]string{
			"stripe":   "the secret is right, but the header Stripe-Signature came as HTTP_STRIPE_SIGNATURE, and the header Content-Type came as HTTP_CONTENT_TYPE",
			"github":   "the secret is right, but the header X-Hub-Signature-256 came as HTTP_X_HUB_SIGNATURE_256, and the header Content-Type came as HTTP_CONTENT_TYPE",
			"standard": "the secret is right, but the header Webhook-Signature came as HTTP_WEBHOOK_SIGNATURE, and the header Webhook-Id came as HTTP_WEBHOOK_ID, and the header Webhook-Timestamp came as HTTP_WEBHOOK_TIMESTAMP, and the header Content-Type came as HTTP_CONTENT_TYPE",
			"twilio":   "the secret is right, but the header X-Twilio-Signature came as HTTP_X_TWILIO_SIGNATURE, and the header Content-Type came as HTTP_CONTENT_TYPE",
		},
	},
	{
		name: "a header dropped", make: func(c *diagnose.Capture) { c.Request.Header.Del(carrierOf[c.Spec.Name]) }, guess: true, word: diagnose.HeaderMissing, wants: map[string]string{
			"stripe":   "the header Stripe-Signature is missing, which Stripe sends with every request",
			"github":   "the header X-Hub-Signature-256 is missing, which GitHub sends with every request",
			"standard": "the header Webhook-Signature is missing, which Standard Webhooks sends with every request",
			"twilio":   "the header X-Twilio-Signature is missing, which Twilio sends with every request",
		},
	},
	{
		name: "a signature cut off", make: headerIs(func(s string) string { return s[:len(s)-5] }), guess: true, word: diagnose.SignatureCut, wants: map[string]string{
			"stripe":   "the signature in the header Stripe-Signature is cut off: 59 characters of 64 are there",
			"github":   "the signature in the header X-Hub-Signature-256 is cut off: 59 characters of 64 are there",
			"standard": "the signature in the header Webhook-Signature is cut off: 39 characters of 44 are there",
			"twilio":   "the signature in the header X-Twilio-Signature is cut off: 23 characters of 28 are there",
		},
	},
	{
		name: "a signature in quotes", make: headerIs(func(s string) string { return `"` + s + `"` }), word: diagnose.HeaderChanged, wants: map[string]string{
			"stripe":   "the secret is right, but the header Stripe-Signature has quotes or brackets around its value",
			"github":   "the secret is right, but the header X-Hub-Signature-256 has quotes or brackets around its value",
			"standard": "the secret is right, but the header Webhook-Signature has quotes or brackets around its value",
			"twilio":   "the secret is right, but the header X-Twilio-Signature has quotes or brackets around its value",
		},
	},
	{
		name: "a clock, an older signature or the URL of a proxy", make: late(3 * 24 * time.Hour), by: map[string]func(*diagnose.Capture){
			"github": older, "standard": late(-2 * time.Hour), "twilio": func(c *diagnose.Capture) { c.Settings.URL = "http://shop.example/in/hooks" },
		},
		words: map[string]diagnose.Word{"stripe": diagnose.TimeOld, "github": diagnose.SignatureHash, "standard": diagnose.TimeZone, "twilio": diagnose.URLScheme},
		wants: map[string]string{
			"stripe":   "the signature is right, but it was made 3 days before the time of arrival, 2026-02-06T04:05:06Z",
			"github":   "the secret is right, but the signature in the header X-Hub-Signature is made with SHA-1, and one with SHA-256 is wanted",
			"standard": "the signature is right, but its time and that of the arrival are 2 hours apart: one of two clocks shows the time of its zone as UTC",
			"twilio":   "the secret is right, but the URL begins with http:, and the signed one with https:",
		},
	},
	{
		name: "the secret of another endpoint", make: secretIs(func(s string) string { return s[:len(s)-4] + "0000" }), guess: true, word: diagnose.OtherSecret,
		want:  "the secret is another one than the sender signed with, or the body is not the one that it sent, in a way that cannot be undone",
		wants: map[string]string{"twilio": "the secret is another one than the sender signed with, or the URL or the body is not the one that it signed"},
	},
	{
		name: "two mistakes", make: func(c *diagnose.Capture) {
			bodyIs(func(b []byte) []byte { return append(b, '\n') })(c)
			secretIs(func(s string) string { return "'" + s + "'" })(c)
		},
		want: "the body ends in a line break that the sender did not sign, and the secret has quotes around it", word: diagnose.BodyLineBreak,
	},
}

var carrierOf = map[string]string{"stripe": "Stripe-Signature", "github": "X-Hub-Signature-256", "standard": "Webhook-Signature", "twilio": "X-Twilio-Signature"}

func bodyIs(edit func([]byte) []byte) func(*diagnose.Capture) {
	return func(c *diagnose.Capture) { c.Request.Body = edit(slices.Clone(c.Request.Body)) }
}

func secretIs(edit func(string) string) func(*diagnose.Capture) {
	return func(c *diagnose.Capture) { c.Settings.Secrets = spec.Secrets(edit(c.Settings.Secrets[0].Text)) }
}

func headerIs(edit func(string) string) func(*diagnose.Capture) {
	return func(c *diagnose.Capture) {
		name := carrierOf[c.Spec.Name]
		c.Request.Header.Set(name, edit(c.Request.Header.Get(name)))
	}
}

func late(by time.Duration) func(*diagnose.Capture) {
	return func(c *diagnose.Capture) { c.Request.Now = c.Request.Now.Add(by) }
}

func compacted(b []byte) []byte {
	var out bytes.Buffer
	_ = json.Compact(&out, b)
	return out.Bytes()
}

// remarshalled keeps the order of the names, and writes strings as Go does.
func remarshalled(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(`\/`), []byte("/")), []byte(`\u00e4`), []byte("ä"))
}

// parsedForm makes JSON of the form.
func parsedForm(c *diagnose.Capture) {
	fields := map[string]string{}
	for pair := range strings.SplitSeq(string(c.Request.Body), "&") {
		name, text, _ := strings.Cut(pair, "=")
		fields[name] = strings.ReplaceAll(text, "%2B", "+")
	}
	c.Request.Body, _ = json.Marshal(fields)
	c.Request.Header.Set("Content-Type", "application/json")
}

// older leaves the signature that GitHub sent before it had one with SHA-256, and sends still.
func older(c *diagnose.Capture) {
	v := spec.Verify{Hash: spec.SHA1, Signature: spec.Signature{In: "header:X-Hub-Signature", Prefix: "sha1="}, Sign: []spec.Value{"body"}}
	p, _ := spec.New(spec.Spec{Name: "older", Verify: []spec.Verify{v}}, spec.Settings{Secrets: c.Settings.Secrets})
	_ = p.Sign(c.Request)
	c.Request.Header.Del("X-Hub-Signature-256")
}

// isOf makes a request of another provider, with the secret that it is signed with.
func isOf(name, other string) func(*diagnose.Capture) {
	return func(c *diagnose.Capture) {
		is := genuine(other)
		if name == "standard" { // whose secrets have a form
			is.Settings.Secrets = spec.Secrets("fake-secret-for-tests-that-is-long-enough")
		}
		c.Request, c.Settings.Secrets = is.Request, is.Settings.Secrets
	}
}

// TestCauses: each mistake is named in the first line, with every scheme.
func TestCauses(t *testing.T) {
	testskip.Race(t)
	named := 0
	for _, m := range mistakes {
		for _, name := range schemes {
			c := capture(t, name)
			breaks := m.make
			if other := m.by[name]; other != nil {
				breaks = other
			}
			breaks(c)
			want, word := m.want, m.word
			if other := m.wants[name]; other != "" {
				want = other
			}
			if other := m.words[name]; other != "" {
				word = other
			}
			got := why(t, c)
			mustNotShow(t, got, secretOf(name), c.Settings.Secrets[0].Text, c.Request.Header.Get(carrierOf[name]))
			if got.Text != want || got.Word != word || got.Proven == m.guess || got.Mend == "" {
				t.Errorf("%s, %s:\n got %+v\nwant %q %q, proven %v", name, m.name, got, word, want, !m.guess)
				continue
			}
			named++
		}
	}
	if named < 40 {
		t.Errorf("%d captures", named)
	}
}

// mustNotShow insists that no text has a secret or a signature in it.
func mustNotShow(t testing.TB, c diagnose.Cause, hidden ...string) {
	t.Helper()
	for _, text := range hidden {
		core := strings.Trim(text, "\"' \n")
		for _, part := range []string{core, strings.TrimPrefix(core, "whsec_"), core[strings.LastIndexAny(core, "=,")+1:], base64.StdEncoding.EncodeToString([]byte(core))} {
			if len(part) > 5 && strings.Contains(c.Text+c.Mend, part) {
				t.Errorf("%q is in %+v", part, c)
			}
		}
	}
}
