package provider

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/provider/spec"
)

// schemes are the entries that stand for a scheme and not for a sender: nothing is known of who uses them.
var schemes = []string{"hmac", "http-signature", "standard", "svix"}

// documented are headers that senders document besides those that an entry takes something from. Headers that hold the
// secret itself, such as X-Gitlab-Token, are passed on by nobody.
var documented = map[string]string{
	"circle":            "X-Circle-Signature X-Circle-Key-Id",
	"modern-treasury":   "X-Signature X-Webhook-ID",
	"mercado-pago":      "X-Signature X-Request-Id",
	"paymongo":          "Paymongo-Signature",
	"fastspring":        "X-FS-Signature",
	"fintoc":            "Fintoc-Signature",
	"front":             "X-Front-Signature X-Front-Request-Timestamp X-Front-Challenge",
	"dwolla":            "X-Request-Signature-SHA-256",
	"squarespace":       "Squarespace-Signature",
	"lago":              "X-Lago-Signature X-Lago-Signature-Algorithm X-Lago-Unique-Key",
	"pusher":            "X-Pusher-Signature X-Pusher-Key",
	"worldline-connect": "X-GCS-Signature X-GCS-KeyId",
	"paystack":          "X-Paystack-Signature",
	"flutterwave":       "Flutterwave-Signature",
	"checkout":          "Cko-Signature",
	"bigcommerce":       "Webhook-Id Webhook-Timestamp Webhook-Signature",
	"airwallex":         "X-Signature X-Timestamp",
	"persona":           "Persona-Signature",
	"lob":               "Lob-Signature Lob-Signature-Timestamp",
	"elevenlabs":        "ElevenLabs-Signature",
	"cloudinary":        "X-Cld-Signature X-Cld-Timestamp",
	"sinch":             "X-Sinch-Webhook-Signature X-Sinch-Webhook-Signature-Timestamp X-Sinch-Webhook-Signature-Nonce X-Sinch-Webhook-Signature-Algorithm",
	"klaviyo":           "Klaviyo-Signature Klaviyo-Timestamp Klaviyo-Webhook-Id",
	"mandrill":          "X-Mandrill-Signature",
	"customerio":        "X-CIO-Signature X-CIO-Timestamp",
	"cashfree":          "X-Webhook-Signature X-Webhook-Timestamp",
	"adyen-platform":    "HmacSignature Protocol",
	"azure-event-grid":  "Aeg-Event-Type Aeg-Subscription-Name Aeg-Delivery-Count Aeg-Metadata-Version Aeg-Data-Version Aeg-Output-Event-Id",
	"aws-sns":           "X-Amz-Sns-Message-Type X-Amz-Sns-Message-Id X-Amz-Sns-Topic-Arn X-Amz-Sns-Subscription-Arn X-Amz-Sns-Rawdelivery",
	"asana":             "X-Hook-Signature",
	"bird":              "MessageBird-Signature MessageBird-Request-Timestamp",
	"bitbucket":         "X-Event-Key X-Hook-UUID X-Request-UUID X-Attempt-Number X-Event-Time X-Hub-Signature",
	"box":               "Box-Delivery-Id Box-Delivery-Timestamp Box-Signature-Primary Box-Signature-Secondary Box-Signature-Version Box-Signature-Algorithm",
	"calendly":          "Calendly-Webhook-Signature",
	"circleci":          "Circleci-Signature Circleci-Event-Type",
	"clerk":             "Svix-Id Svix-Timestamp Svix-Signature",
	"coinbase-commerce": "X-Cc-Webhook-Signature",
	"contentful":        "X-Contentful-Topic X-Contentful-Webhook-Name X-Contentful-Signature X-Contentful-Signed-Headers X-Contentful-Timestamp",
	"discord":           "X-Signature-Ed25519 X-Signature-Timestamp",
	"docusign":          "X-Authorization-Digest X-DocuSign-AccountId X-DocuSign-Signature-1 X-DocuSign-Signature-2 X-DocuSign-Signature-100",
	"dropbox":           "X-Dropbox-Signature",
	"easypost":          "X-Hmac-Signature X-Hmac-Signature-V2 X-Timestamp X-Path",
	"ebay":              "X-Ebay-Signature",
	"finch":             "Finch-Event-Id Finch-Timestamp Finch-Signature",
	"github": "X-GitHub-Hook-ID X-GitHub-Event X-GitHub-Delivery X-Hub-Signature X-Hub-Signature-256 X-GitHub-Hook-Installation-Target-Type " +
		"X-GitHub-Hook-Installation-Target-ID X-GitHub-Enterprise-Version X-GitHub-Enterprise-Host",
	"gitlab":        "Idempotency-Key X-Gitlab-Event X-Gitlab-Instance X-Gitlab-Webhook-UUID X-Gitlab-Event-UUID Webhook-Id Webhook-Timestamp Webhook-Signature",
	"gocardless":    "Webhook-Signature Origin",
	"hubspot":       "X-HubSpot-Signature X-HubSpot-Signature-Version X-HubSpot-Signature-V3 X-HubSpot-Request-Timestamp",
	"intercom":      "X-Hub-Signature X-Body-Signature",
	"jira":          "X-Atlassian-Webhook-Identifier X-Atlassian-Webhook-Retry X-Atlassian-Webhook-Flow X-Hub-Signature",
	"kinde":         "Webhook-Id",
	"lemon-squeezy": "X-Event-Name X-Signature",
	"line":          "X-Line-Signature",
	"linear":        "Linear-Delivery Linear-Event Linear-Signature Linear-Timestamp",
	"meta":          "X-Hub-Signature X-Hub-Signature-256",
	"mollie":        "X-Mollie-Signature",
	"mux":           "Mux-Signature",
	"messagebird":   "MessageBird-Signature-JWT",
	"netlify":       "X-Webhook-Signature X-Netlify-Event",
	"openai":        "Webhook-Id Webhook-Timestamp Webhook-Signature",
	"paddle":        "Paddle-Signature",
	"pagerduty":     "X-PagerDuty-Signature X-Webhook-Id X-Webhook-Subscription",
	"paypal":        "Paypal-Transmission-Id Paypal-Transmission-Time Paypal-Transmission-Sig Paypal-Cert-Url Paypal-Auth-Algo Paypal-Auth-Version Correlation-Id",
	"plaid":         "Plaid-Verification",
	"plivo":         "X-Plivo-Signature-V3 X-Plivo-Signature-Ma-V3 X-Plivo-Signature-V3-Nonce",
	"postmark":      "X-PM-Retries-Remaining X-PM-Webhook-Trace-Id",
	"quickbooks":    "Intuit-Signature Intuit-Created-Time Intuit-T-Id Intuit-Notification-Schema-Version",
	"razorpay":      "X-Razorpay-Signature X-Razorpay-Event-Id",
	"recurly":       "Recurly-Signature Recurly-Notification-Id",
	"sanity":        "Idempotency-Key Sanity-Transaction-Id Sanity-Transaction-Time Sanity-Dataset Sanity-Document-Id Sanity-Project-Id Sanity-Webhook-Id Sanity-Operation Sanity-Webhook-Signature",
	"sendgrid":      "X-Twilio-Email-Event-Webhook-Signature X-Twilio-Email-Event-Webhook-Timestamp",
	"sentry":        "Request-ID Sentry-Hook-Resource Sentry-Hook-Timestamp Sentry-Hook-Signature",
	"shippo":        "Shippo-Auth-Signature",
	"shopify": "X-Shopify-Topic X-Shopify-Sub-Topic X-Shopify-Hmac-Sha256 X-Shopify-Shop-Domain X-Shopify-API-Version X-Shopify-Webhook-Id X-Shopify-Triggered-At X-Shopify-Event-Id " +
		"X-Shopify-Name X-Shopify-Test X-Shopify-Order-Id Shopify-Topic Shopify-Hmac-Sha256 Shopify-Shop-Domain Shopify-Webhook-Id",
	"slack":  "X-Slack-Signature X-Slack-Request-Timestamp X-Slack-Retry-Num X-Slack-Retry-Reason",
	"square": "X-Square-Hmacsha256-Signature X-Square-Signature Square-Environment Square-Retry-Number Square-Retry-Reason Square-Initial-Delivery-Timestamp",
	"stripe": "Stripe-Signature", "telnyx": "Telnyx-Signature-Ed25519 Telnyx-Timestamp", "trello": "X-Trello-Webhook",
	"twilio": "X-Twilio-Signature I-Twilio-Idempotency-Token X-Home-Region", "twilio-events": "X-Twilio-Signature",
	"twitch": "Twitch-Eventsub-Message-Id Twitch-Eventsub-Message-Retry Twitch-Eventsub-Message-Type Twitch-Eventsub-Message-Signature Twitch-Eventsub-Message-Timestamp " +
		"Twitch-Eventsub-Subscription-Type Twitch-Eventsub-Subscription-Version",
	"typeform": "Typeform-Signature", "vercel": "X-Vercel-Signature", "whatsapp": "X-Hub-Signature-256", "wise": "X-Signature-SHA256 X-Signature X-Delivery-Id X-Test-Notification",
	"woocommerce": "X-WC-Webhook-Source X-WC-Webhook-Topic X-WC-Webhook-Resource X-WC-Webhook-Event X-WC-Webhook-Signature X-WC-Webhook-ID X-WC-Webhook-Delivery-ID",
	"workos":      "WorkOS-Signature", "x": "X-Twitter-Webhooks-Signature", "xero": "X-Xero-Signature", "zoom": "X-Zm-Signature X-Zm-Request-Timestamp X-Zm-Trackingid ClientId",
}

// TestEveryDocumentedHeaderPasses: an application that was written for the sender finds what it reads, whatever somebody put
// beside it.
func TestEveryDocumentedHeaderPasses(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		if known := len(s.Headers) > 0; known == slices.Contains(schemes, s.Name) {
			t.Errorf("which headers it documents is known: %v", known)
		}
		header := http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}, "User-Agent": {"Sender/1"}}
		if s.Imitable() {
			header = sent(t, p, "101", "").Header // what is signed and extracted
		}
		for _, name := range strings.Fields(documented[s.Name]) {
			header.Set(name, "documented")
		}
		for name, value := range s.Example.Header {
			header.Set(name, value)
		}
		needed := maps.Clone(header)
		for _, listed := range append(slices.Clone(s.Headers), "X-*") { // junk, which is smaller than what is needed
			for i := range 100 {
				if beginning, ok := strings.CutSuffix(listed, "*"); ok {
					header.Set(beginning+strconv.Itoa(i), "")
				}
			}
		}
		lines, err := p.PassedHeaders().Encode(header)
		if err != nil {
			t.Fatal(err)
		}
		kept := fields(t, lines)
		for name := range needed {
			if secret := slices.Contains(p.Profile().SecretHeaders, name); kept.Get(name) == "" && !secret && name != "Authorization" {
				t.Errorf("%s is lost", name)
			}
		}
	})
}

// TestNoSenderBringsAnAttack: nothing that applications act on passes, with whichever sender's requests.
func TestNoSenderBringsAnAttack(t *testing.T) {
	own := []string{"Idempotency-Key", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Origin"} // that some document
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		header := http.Header{}
		for _, name := range []string{
			"Proxy", "X-Original-URL", "X-Rewrite-URL", "X-Original-Host", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override", "X-Real-IP", "X-Client-IP",
			"True-Client-IP", "CF-Connecting-IP", "X-Cluster-Client-IP", "Remote-User", "X-Remote-User", "X-Authenticated-User", "Ssl-Client-Verify", "Ssl-Client-Cert",
			"X-SSL-Client-Verify", "X-Client-Cert", "Range", "If-None-Match", "If-Modified-Since", "X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Via", "Accept-Encoding",
			"Authorization", "Cookie", "Connection", "Traceparent", "Hookonce-Key", "Hookonce_Key", "Hookonce.Key", "X-Vercel-Forwarded-For", "X-Ms-Client-Principal", "X-Middleware-Subrequest",
		} {
			header.Set(name, "evil")
		}
		for _, name := range slices.Concat(own, strings.Fields(documented[s.Name])) {
			if !strings.Contains(name, "-") {
				continue // there is nothing to take for a dash
			}
			for _, sign := range []string{"_", ".", "!"} {
				header.Set(strings.ReplaceAll(name, "-", sign), "evil")
				header.Set(strings.Replace(name, "-", sign, 1), "evil")
			}
		}
		if !strings.Contains(documented[s.Name], "Origin") {
			header.Set("Origin", "evil")
		}
		if lines, err := p.PassedHeaders().Encode(header); err != nil || len(lines) > 0 {
			t.Errorf("%q, %v", lines, err)
		}
	})
}

// TestUnknownHeadersOfKnownSendersDoNotPass, and those that only begin like the sender's own do.
func TestUnknownHeadersOfKnownSendersDoNotPass(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		header := http.Header{"X-Tenant": {"evil"}, "Accept": {"*/*"}, "X-Unheard-Of": {"evil"}}
		own := 0
		for _, listed := range s.Headers {
			if beginning, ok := strings.CutSuffix(listed, "*"); ok {
				header.Set(beginning+"New", "1")
				own++
			}
		}
		lines, err := p.PassedHeaders().Encode(header)
		if err != nil {
			t.Fatal(err)
		}
		kept := fields(t, lines)
		if slices.Contains(schemes, s.Name) {
			own = len(header)
		}
		if len(kept) != own {
			t.Errorf("kept %q of %q", kept, header)
		}
	})
}

func fields(t testing.TB, lines []byte) http.Header {
	t.Helper()
	h, err := textproto.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(lines), strings.NewReader("\r\n")))).ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	return http.Header(h)
}
