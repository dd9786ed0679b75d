package secretshape

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// keyShape is a beginning by which a key to call an API with is known.
type keyShape struct {
	begins string
	rest   *regexp.Regexp // what follows; nil: eight characters at least
	is     string         // "a secret API key of Stripe"
	from   string         // the provider whose key it is, as the catalogue calls it
}

// keyShapes are reported: gitleaks/gitleaks: config/gitleaks.toml, which has them from the vendors, but where a line says
// otherwise. The longer of two beginnings stands first.
var keyShapes = []keyShape{
	{begins: "sk_live_", is: "an API key, as Stripe's are", from: "stripe"},
	{begins: "sk_test_", is: "an API key, as Stripe's are", from: "stripe"},
	{begins: "rk_live_", is: "a restricted API key of Stripe", from: "stripe"},
	{begins: "rk_test_", is: "a restricted API key of Stripe", from: "stripe"},
	{begins: "pk_live_", is: "a publishable API key, as Stripe's are", from: "stripe"}, // Stripe documentation, API keys
	{begins: "pk_test_", is: "a publishable API key, as Stripe's are", from: "stripe"},
	{begins: "xoxb-", is: "a bot token of Slack", from: "slack"},
	{begins: "xoxp-", is: "a user token of Slack", from: "slack"},
	{begins: "xoxa-", is: "a workspace token of Slack", from: "slack"},
	{begins: "xoxe", is: "a configuration token of Slack", from: "slack"},
	{begins: "xapp-", is: "an app-level token of Slack", from: "slack"},
	{begins: "github_pat_", is: "an access token of GitHub", from: "github"},
	{begins: "ghp_", is: "an access token of GitHub", from: "github"},
	{begins: "gho_", is: "an access token of GitHub", from: "github"},
	{begins: "ghu_", is: "an access token of GitHub", from: "github"},
	{begins: "ghs_", is: "an access token of GitHub", from: "github"},
	{begins: "ghr_", is: "a refresh token of GitHub", from: "github"},
	{begins: "glpat-", is: "an access token of GitLab", from: "gitlab"},
	{begins: "gldt-", is: "a deploy token of GitLab", from: "gitlab"},
	{begins: "shpat_", is: "an access token of Shopify", from: "shopify"},
	{begins: "shpca_", is: "an access token of Shopify", from: "shopify"},
	{begins: "shppa_", is: "an access token of Shopify", from: "shopify"},
	{begins: "SG.", rest: regexp.MustCompile(`^[A-Za-z0-9_-]{16,}\.`), is: "an API key of SendGrid", from: "sendgrid"},
	{begins: "key-", rest: regexp.MustCompile(`^[0-9a-f]{32}$`), is: "an API key of Mailgun", from: "mailgun"},
	{begins: "pubkey-", rest: regexp.MustCompile(`^[0-9a-f]{32}$`), is: "a public API key of Mailgun", from: "mailgun"},
	{begins: "AC", rest: regexp.MustCompile(`^[0-9a-f]{32}$`), is: "an account SID of Twilio", from: "twilio"}, // Twilio documentation, String identifiers
	{begins: "SK", rest: regexp.MustCompile(`^[0-9a-fA-F]{32}$`), is: "the SID of an API key of Twilio", from: "twilio"},
	{begins: "lin_api_", is: "an API key of Linear", from: "linear"},
	{begins: "EAAA", is: "an access token of Square", from: "square"},
	{begins: "sq0atp-", is: "an access token of Square", from: "square"},
	{begins: "EZAK", rest: regexp.MustCompile(`^[A-Za-z0-9]{54}$`), is: "an API key of EasyPost", from: "easypost"},
	{begins: "EZTK", rest: regexp.MustCompile(`^[A-Za-z0-9]{54}$`), is: "an API key of EasyPost", from: "easypost"},
	{begins: "shippo_live_", is: "an API key of Shippo", from: "shippo"},
	{begins: "shippo_test_", is: "an API key of Shippo", from: "shippo"},
	{begins: "tfp_", is: "an access token of Typeform", from: "typeform"},
	{begins: "sntrys_", is: "an access token of Sentry", from: "sentry"},
	{begins: "sntryu_", is: "an access token of Sentry", from: "sentry"},
	{begins: "sk-ant-", is: "an API key of Anthropic"},
	{begins: "sk-proj-", is: "an API key of OpenAI", from: "openai"},
	{begins: "ntn_", is: "an API token of Notion", from: "notion"},
	{begins: "xkeysib-", is: "an API key of Brevo", from: "brevo"},
	{begins: "FLWSECK", is: "an API key of Flutterwave", from: "flutterwave"},
	{begins: "FLWPUBK", is: "a public API key of Flutterwave", from: "flutterwave"},
	{begins: "AKIA", rest: regexp.MustCompile(`^[A-Z2-7]{16}$`), is: "an access key of AWS", from: "aws-sns"},
	{begins: "AIza", rest: regexp.MustCompile(`^[\w-]{35}$`), is: "an API key of Google"},
	{begins: "ey", rest: regexp.MustCompile(`^[A-Za-z0-9_-]{17,}\.ey[A-Za-z0-9_-]{17,}\.`), is: "a JSON Web Token, which is what access tokens are"},
}

var someMore = regexp.MustCompile(`^[\w.-]{8,}$`)

// apiKey finds a key that an API is called with, where the sender does not sign with that one.
func apiKey(text string, _ []string, known spec.Spec) (Finding, bool) {
	for _, k := range keyShapes {
		rest, is := strings.CutPrefix(text, k.begins)
		if follows := k.rest; !is || follows != nil && !follows.MatchString(rest) || follows == nil && !someMore.MatchString(rest) {
			continue
		}
		if signsWithAPIKey(known) || k.begins == "ey" && sendsAlong(known) {
			return Finding{}, false
		}
		f := Finding{Kind: APIKey, Text: "is " + k.is + " (" + k.begins + "…), and that signs no webhooks", Mend: "give " + wanted(known), Sure: !known.OwnSecret && !sendsAlong(known)}
		if k.from == known.Name && slices.Contains(apiKeyBefore, known.Name) {
			f.Text, f.Sure = "is "+k.is+" ("+k.begins+"…), and webhooks are signed with another one unless that was never renewed", false
		}
		return f, true
	}
	return Finding{}, false
}

// signsWithAPIKey reports whether the secret of a sender is what its API is called with.
func signsWithAPIKey(known spec.Spec) bool {
	return strings.Contains(known.Secret, "API") || slices.Contains(apiKeySigners, known.Name)
}

// apiKeySigners sign with the secret key of their API (Paystack documentation, Webhooks).
var apiKeySigners = []string{"paystack"}

// apiKeyBefore signed with the key of their API, and have one for webhooks now, which may be the same still
// (SparkDevNetwork/Rock: issue 5694, of Mailgun).
var apiKeyBefore = []string{"mailgun"}

// sendsAlong reports whether the secret of a sender is nothing but a text that it sends along.
func sendsAlong(known spec.Spec) bool {
	return !slices.ContainsFunc(known.WithDefaults().Verify, func(v spec.Verify) bool { return v.Kind != spec.Token && v.Kind != spec.Basic })
}

// otherSenders hand out webhook secrets that begin like this.
var otherSenders = map[string]string{"whsec_": "Stripe and those that use Standard Webhooks", "pdl_ntfset_": "Paddle"}

// otherSender finds the webhook secret of another sender. Whoever makes a secret up may choose such a beginning.
func otherSender(text string, _ []string, known spec.Spec) (Finding, bool) {
	for begins, of := range otherSenders {
		if !strings.HasPrefix(text, begins) || known.OwnSecret || Beginning(known) == begins || strings.Contains(known.Secret, begins) ||
			slices.ContainsFunc(known.Verify, func(v spec.Verify) bool {
				return v.Key == spec.KeyWhsec || strings.EqualFold(string(v.Signature.In), "header:webhook-signature")
			}) {
			continue
		}
		return Finding{Kind: OtherSender, Text: "begins with " + begins + ", as those of " + of + " do", Mend: "give " + wanted(known)}, true
	}
	return Finding{}, false
}
