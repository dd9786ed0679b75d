package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
	"github.com/hookonce/hookonce/provider/spec"
)

// ErrUnknown says that the catalogue has no provider of that name.
var ErrUnknown = errors.New("no such provider")

// catalogue lists every provider by its name, with the aliases among them. A function makes a copy of its own for each caller.
//
// A new sender has a file of its own, a line here, an example of its constructor in example_catalogue_test.go, and its
// section in docs/providers.md, which make docs writes.
var catalogue = withAliases(map[string]func() spec.Spec{
	"adyen":                  adyenSpec,
	"adyen-platform":         adyenPlatformSpec,
	"airtable":               airtableSpec,
	"airwallex":              airwallexSpec,
	"app-store":              appStoreSpec,
	"asana":                  asanaSpec,
	"auth0":                  auth0Spec,
	"aws-sns":                amazonSNSSpec,
	"azure-devops":           azureDevOpsSpec,
	"azure-event-grid":       azureEventGridSpec,
	"azure-event-grid-entra": azureEventGridEntraSpec,
	"bigcommerce":            bigCommerceSpec,
	"bird":                   birdSpec,
	"bitbucket":              bitbucketSpec,
	"box":                    boxSpec,
	"braintree":              braintreeSpec,
	"brevo":                  brevoSpec,
	"buildkite":              buildkiteSpec,
	"cal-com":                calComSpec,
	"calendly":               calendlySpec,
	"cashfree":               cashfreeSpec,
	"chargebee":              chargebeeSpec,
	"checkout":               checkoutSpec,
	"circle":                 circleSpec,
	"circleci":               circleciSpec,
	"clickup":                clickupSpec,
	"cloudflare":             cloudflareSpec,
	"cloudinary":             cloudinarySpec,
	"coinbase":               coinbaseSpec,
	"coinbase-commerce":      coinbaseCommerceSpec,
	"contentful":             contentfulSpec,
	"customerio":             customerIOSpec,
	"datadog":                datadogSpec,
	"discord":                discordSpec,
	"discord-interactions":   discordInteractionsSpec,
	"discourse":              discourseSpec,
	"docusign":               docusignSpec,
	"dropbox":                dropboxSpec,
	"dub":                    dubSpec,
	"dwolla":                 dwollaSpec,
	"easypost":               easypostSpec,
	"ebay":                   ebaySpec,
	"elevenlabs":             elevenLabsSpec,
	"fastspring":             fastSpringSpec,
	"figma":                  figmaSpec,
	"fintoc":                 fintocSpec,
	"flutterwave":            flutterwaveSpec,
	"flutterwave-legacy":     flutterwaveLegacySpec,
	"forgejo":                forgejoSpec,
	"front":                  frontSpec,
	"ghost":                  ghostSpec,
	"gitea":                  giteaSpec,
	"github":                 githubSpec,
	"gitlab":                 gitlabSpec,
	"gocardless":             gocardlessSpec,
	"google-play":            googlePlaySpec,
	"google-pubsub":          googlePubSubSpec,
	"grafana":                grafanaSpec,
	"greenhouse":             greenhouseSpec,
	"gumroad":                gumroadSpec,
	"hasura":                 hasuraSpec,
	"hcp-terraform":          hcpTerraformSpec,
	"heroku":                 herokuSpec,
	"hmac":                   HMACConfig{}.Spec,
	"http-signature":         HTTPSignatureConfig{}.Spec,
	"hubspot":                hubspotSpec,
	"hubspot-legacy":         hubspotLegacySpec,
	"intercom":               intercomSpec,
	"jira":                   jiraSpec,
	"kinde":                  kindeSpec,
	"klaviyo":                klaviyoSpec,
	"kofi":                   kofiSpec,
	"lago":                   lagoSpec,
	"launchdarkly":           launchDarklySpec,
	"lemon-squeezy":          lemonSqueezySpec,
	"line":                   lineSpec,
	"linear":                 linearSpec,
	"lob":                    lobSpec,
	"logto":                  logtoSpec,
	"mailchimp":              mailchimpSpec,
	"mailgun":                mailgunSpec,
	"mandrill":               mandrillSpec,
	"mercado-pago":           mercadoPagoSpec,
	"messagebird":            messageBirdSpec,
	"meta":                   metaSpec,
	"midtrans":               midtransSpec,
	"modern-treasury":        modernTreasurySpec,
	"mollie":                 mollieSpec,
	"mollie-classic":         mollieClassicSpec,
	"monday":                 mondaySpec,
	"ms-graph":               msGraphSpec,
	"mux":                    muxSpec,
	"netlify":                netlifySpec,
	"notion":                 notionSpec,
	"okta":                   oktaSpec,
	"outline":                outlineSpec,
	"paddle":                 paddleSpec,
	"pagerduty":              pagerdutySpec,
	"pandadoc":               pandaDocSpec,
	"paymongo":               payMongoSpec,
	"paypal":                 paypalSpec,
	"paystack":               paystackSpec,
	"persona":                personaSpec,
	"plaid":                  plaidSpec,
	"plane":                  planeSpec,
	"plivo":                  plivoSpec,
	"postmark":               postmarkSpec,
	"pusher":                 pusherSpec,
	"quickbooks":             quickbooksSpec,
	"razorpay":               razorpaySpec,
	"recurly":                recurlySpec,
	"revenuecat":             revenueCatSpec,
	"sanity":                 sanitySpec,
	"segment":                segmentSpec,
	"sendgrid":               sendgridSpec,
	"sentry":                 sentrySpec,
	"shippo":                 shippoSpec,
	"shopify":                shopifySpec,
	"sinch":                  sinchSpec,
	"slack":                  slackSpec,
	"snyk":                   snykSpec,
	"sonarqube":              sonarQubeSpec,
	"square":                 squareSpec,
	"squarespace":            squarespaceSpec,
	"standard":               standardSpec,
	"stripe":                 stripeSpec,
	"svix":                   svixSpec,
	"tally":                  tallySpec,
	"telegram":               telegramSpec,
	"telnyx":                 telnyxSpec,
	"todoist":                todoistSpec,
	"trello":                 trelloSpec,
	"twilio":                 twilioSpec,
	"twilio-events":          twilioEventsSpec,
	"twitch":                 twitchSpec,
	"typeform":               typeformSpec,
	"vercel":                 vercelSpec,
	"vonage":                 vonageSpec,
	"webflow":                webflowSpec,
	"whatsapp":               whatsappSpec,
	"wise":                   wiseSpec,
	"woocommerce":            wooCommerceSpec,
	"workos":                 workosSpec,
	"worldline-connect":      worldlineConnectSpec,
	"x":                      xSpec,
	"xendit":                 xenditSpec,
	"xero":                   xeroSpec,
	"zendesk":                zendeskSpec,
	"zoom":                   zoomSpec,
})

// Names returns the names of the providers in the catalogue, sorted.
func Names() []string { return slices.Sorted(maps.Keys(catalogue)) }

// Lookup returns the specification of a provider in the catalogue, the caller's own copy. Names are exact. An
// unknown one is an error that wraps [ErrUnknown] and says what was probably meant.
func Lookup(name string) (spec.Spec, error) {
	make, ok := catalogue[name]
	if !ok {
		return spec.Spec{}, unknown(name)
	}
	return make(), nil
}

// Build returns the provider of that name in the catalogue, for one endpoint. Its errors are those of
// [Lookup] and [spec.New].
func Build(name string, settings spec.Settings) (*spec.Provider, error) {
	s, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	return spec.New(s, settings)
}

func unknown(name string) error {
	if meant := suggest(name); meant != "" {
		return fmt.Errorf("%w: %q; did you mean %q?", ErrUnknown, name, meant)
	}
	return fmt.Errorf("%w: %q; known are %s; describe another with a specification of your own", ErrUnknown, name, strings.Join(Names(), ", "))
}

// suggest returns the name in the catalogue that was probably meant by name, empty if none is near: a slip
// of the keyboard, or a name with more behind it, as in stripe-webhooks.
func suggest(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, known := range Names() {
		if len(known) > 2 && strings.HasPrefix(name, known) {
			return known
		}
	}
	near, _ := closest.Word(name, Names())
	return near
}
