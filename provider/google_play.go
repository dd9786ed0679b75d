package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// GooglePlay returns the provider for Google Play's real-time developer notifications, which come through a push
// subscription of Cloud Pub/Sub with authentication: see [GooglePubSub] for the secrets. It panics if a secret is missing
// or has another form.
//
// The key is the messageId of Pub/Sub. The event's body is the push as it came; its type, app and time are read from the
// notification in its data.
func GooglePlay(secrets ...string) *spec.Provider {
	return must(spec.New(googlePlaySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func googlePlaySpec() spec.Spec {
	s := googlePubSubSpec()
	s.Name, s.Title = "google-play", "Google Play"
	s.Verify = []spec.Verify{{Kind: spec.Code, Scheme: scheme.GooglePlay(http.DefaultTransport)}}
	s.Event.Type = []spec.Value{
		"json:$.notification.subscriptionNotification.notificationType", "json:$.notification.oneTimeProductNotification.notificationType",
		"json:$.notification.voidedPurchaseNotification.productType", "json:$.notification.testNotification.version",
	}
	s.Event.Time = []spec.Moment{at("json:$.notification.eventTimeMillis", spec.Millis), at("json:$.message.publishTime", spec.RFC3339)}
	s.Event.Resource = []spec.Value{
		"json:$.notification.subscriptionNotification.purchaseToken", "json:$.notification.oneTimeProductNotification.purchaseToken",
		"json:$.notification.voidedPurchaseNotification.purchaseToken",
	}
	s.Event.Tenant = []spec.Value{"json:$.notification.packageName"}
	s.Limits.MaxBody = spec.DefaultMaxBody
	s.Example = spec.Template{ID: "136969346945", Body: googlePlayExample}
	s.Sources = append(s.Sources, stated("fields of a notification", "developer.android.com/google/play/billing/rtdn-reference"))
	s.Traps = []string{
		"without authentication of the push subscription there is no token, and everything is rejected",
		"the token covers nothing of the notification: take it as a hint, and fetch the purchase from the Google Play Developer API",
		"the purchase token is shared by all notifications of a subscription: as the key it loses every renewal but the first",
		"numbers stand for types, and 4 means one thing for a subscription and nothing for a product: look at which member is there",
		"notifications of all apps that share the topic arrive: compare packageName",
		"a subscription, or its topic, can keep notifications for 31 days, acknowledged ones too, and one seek sends all of them again",
	}
	return s
}

const googlePlayExample = `{
  "message": {
    "attributes": {},
    "data": "eyJ2ZXJzaW9uIjoiMS4wIiwicGFja2FnZU5hbWUiOiJjb20uZXhhbXBsZS5zaG9wIiwiZXZlbnRUaW1lTWlsbGlzIjoiMTc3MDA5MTUwNjAwMCIsInN1YnNjcmlwdGlvbk5vdGlmaWNhdGlvbiI6eyJ2ZXJzaW9uIjoiMS4wIiwibm90aWZpY2F0aW9uVHlwZSI6NCwicHVyY2hhc2VUb2tlbiI6ImZha2UtcHVyY2hhc2UtdG9rZW4iLCJzdWJzY3JpcHRpb25JZCI6Im1vbnRobHkifX0=",
    "messageId": "{{id}}",
    "publishTime": "{{time}}"
  },
  "subscription": "projects/example/subscriptions/play"
}`
