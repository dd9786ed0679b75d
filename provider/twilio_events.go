package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// TwilioEvents returns the provider for Twilio Event Streams, which sends batches of CloudEvents. The
// URL is the destination that the sink was given, because the signature covers it; empty means the URL
// of the request, which is right only where no proxy changes it. The secrets are the account's auth
// tokens. It panics if a secret is missing or empty, or the URL is not one.
//
// The key is the source and id of the event, which the signature covers by way of the body's hash in
// the URL. No time is signed.
func TwilioEvents(url string, secrets ...string) *spec.Provider {
	return must(spec.New(twilioEventsSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func twilioEventsSpec() spec.Spec {
	return spec.Spec{
		Name:   "twilio-events",
		Title:  "Twilio Event Streams",
		Secret: "the account's auth token",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.TwilioEvents()}},
		Split:  &spec.Split{Items: []spec.Value{"json:$[*]"}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"item:$.source", "item:$.id"}},
			Type:     []spec.Value{"item:$.type"},
			Time:     []spec.Moment{at("item:$.time", spec.RFC3339)},
			Resource: []spec.Value{"item:$.data.messageSid", "item:$.data.callSid", "item:$.source"},
			Tenant:   []spec.Value{"item:$.data.accountSid"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Answer:  spec.Answer{Deadline: 5 * second},
		Limits:  spec.Limits{Retry: 4 * hour},
		Headers: []string{"X-Twilio-*", "I-Twilio-*"},
		Example: spec.Template{ID: "EZ24806c8c31b14db3b8cdb5e2b3b4d5e6", Type: "com.twilio.messaging.message.delivered", Object: "SMexample00000000000000000000000001", Body: twilioEventsExample},
		Sources: []spec.Source{
			stated("events arrive at least once, id, retries", "twilio.com/docs/events/event-delivery-and-duplication"),
			stated("deadline", "twilio.com/docs/events/webhook-quickstart"),
			stated("signature over URL and body, arrays of CloudEvents", "Twilio blog, How to validate Twilio Event Streams webhooks; twilio/twilio-go: client/request_validator.go"),
			stated("source and id identify a CloudEvent", "cloudevents/spec: cloudevents/spec.md"),
		},
		Traps: []string{
			"the SID of a message or call as the key loses every event of it after the first",
			"the body is signed by way of its hash, the parameter bodySHA256 of the URL: keep the query of the request",
			"the overrides in a URL's fragment do not apply to Event Streams",
			"behind a proxy the request's URL differs from the one that the sink was given, and everything is rejected",
		},
	}
}

const twilioEventsExample = `[
  {
    "specversion": "1.0",
    "type": "{{type}}",
    "source": "/2010-04-01/Accounts/ACexample00000000000000000000000000/Messages/{{object}}.json",
    "id": "{{id}}",
    "dataschema": "https://events-schemas.twilio.com/Messaging.MessageStatus/5.json",
    "datacontenttype": "application/json",
    "time": "{{time}}",
    "data": {
      "accountSid": "ACexample00000000000000000000000000",
      "messageSid": "{{object}}",
      "messageStatus": "DELIVERED",
      "timestamp": "{{time}}"
    }
  }
]`
