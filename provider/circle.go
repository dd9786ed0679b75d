package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Circle returns the provider for Circle's notifications of version 2: those of Wallets and Contracts, and of the payments
// network. Notifications of version 1 (Circle Mint) come through Amazon SNS: see [AmazonSNS]. Each secret is what Circle's API
// is called with, as wallets:API_KEY or cpn:API_KEY, because the keys that Circle signs with have to be fetched from there.
// It panics if a secret is missing or has another form. The HEAD request that precedes a subscription is answered.
//
// The key is the notificationId, which the signature covers. No time of the attempt is signed.
func Circle(secrets ...string) *spec.Provider {
	return must(spec.New(circleSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func circleSpec() spec.Spec {
	return spec.Spec{
		Name:   "circle",
		Title:  "Circle",
		Secret: "what the API is called with, as wallets:API_KEY or cpn:API_KEY",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Circle(http.DefaultTransport)}},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.notificationId"}},
			Subscription: []spec.Value{"json:$.subscriptionId"},
			Type:         []spec.Value{"json:$.notificationType"},
			Time:         []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.notification.id"},
		},
		Dedup:      spec.Dedup{Retry: spec.Stable},
		Handshakes: []spec.Handshake{{Method: "HEAD"}},
		Headers:    []string{"X-Circle-Signature", "X-Circle-Key-Id", "X-Circle-*"},
		Example:    spec.Template{ID: "a3f1c2d4-0000-4000-8000-000000001001", Type: "transactions.outbound", Object: "b3f1c2d4-0000-4000-8000-000000001001", Body: circleExample},
		Sources: []spec.Source{
			stated("signature, key, where it is fetched", "developers.circle.com/api-reference/verify-webhook-signatures"),
			stated("key is the same in retries, delivery at least once", "developers.circle.com/api-reference/webhooks"),
			stated("HEAD, fields", "developers.circle.com/wallets/webhook-notifications"),
			notSourced("how long it retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"subscriptionId is that of the subscription, the same for all notifications: as the key it loses everything after the first",
			"the id in notification is that of the transaction: as the key it loses every later state of it",
			"it is not documented whether others' notifications have the same keys: take only those of your subscriptionId, in a route's where or in the handler",
			"the key is fetched with the API's key: without a way out to Circle nothing can be verified",
			"Circle Mint and other products of version 1 send through Amazon SNS, signed in its way",
		},
	}
}

const circleExample = `{
  "subscriptionId": "00000000-0000-4000-8000-000000001001",
  "notificationId": "{{id}}",
  "notificationType": "{{type}}",
  "notification": {
    "id": "{{object}}",
    "blockchain": "MATIC-AMOY",
    "walletId": "c3f1c2d4-0000-4000-8000-000000001001",
    "amounts": ["42"],
    "state": "COMPLETE",
    "createDate": "{{time}}",
    "updateDate": "{{time}}"
  },
  "timestamp": "{{time}}",
  "version": 2
}`
