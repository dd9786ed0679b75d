package provider

import "github.com/hookonce/hookonce/provider/spec"

// LINE returns the provider for the webhooks of LINE's Messaging API. The secrets are the channel
// secrets. It panics if a secret is missing or empty.
//
// The key of an event is its webhookEventId, which the signature covers and a redelivery repeats. No
// time is signed.
func LINE(secrets ...string) *spec.Provider {
	return must(spec.New(lineSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func lineSpec() spec.Spec {
	return spec.Spec{
		Name:   "line",
		Title:  "LINE",
		Secret: "the channel secret",
		Verify: []spec.Verify{bodyMAC("X-Line-Signature", "", spec.Base64)},
		Split:  &spec.Split{Items: []spec.Value{"json:$.events[*]"}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"item:$.webhookEventId"}},
			Type:     []spec.Value{"item:$.type"},
			Time:     []spec.Moment{at("item:$.timestamp", spec.Millis)},
			Resource: []spec.Value{"item:$.message.id", "item:$.source.groupId", "item:$.source.roomId", "item:$.source.userId"},
			Tenant:   []spec.Value{"json:$.destination"},
		},
		// deliveryContext says whether the event is sent again.
		Dedup: spec.Dedup{
			Same: []spec.Value{
				"item:$.type", "item:$.timestamp", "item:$.source", "item:$.message", "item:$.postback", "item:$.unsend",
				"item:$.joined", "item:$.left", "item:$.beacon", "item:$.link", "item:$.delivery",
			},
			Retry: spec.Stable,
		},
		Headers: []string{"X-Line-*"},
		Example: spec.Template{ID: "01FZ74A0TDDPYRVKNK77XKC3ZR", Type: "message", Object: "444573844083572737", Body: lineExample},
		Sources: []spec.Source{
			stated("signature", "line/line-bot-sdk-go: linebot/webhook/parse.go"),
			stated("webhookEventId is unique, batches, empty batches, redelivery is marked", "line/line-openapi: webhook.yml"),
			reported("the id is the same when an event is sent again", "LINE Developers documentation, Receiving messages, quoted"),
			notSourced("retries: when and for how long events are sent again"),
		},
		Traps: []string{
			"a hash of the event as the key lets copies through: deliveryContext.isRedelivery changes",
			"a request without events checks the connection and is to be answered 200",
			"one request may hold the events of several users",
			"how long LINE sends events again is not stated: keep keys for as long as you can",
		},
	}
}

const lineExample = `{
  "destination": "U00000000000000000000000000000001",
  "events": [
    {
      "type": "{{type}}",
      "webhookEventId": "{{id}}",
      "deliveryContext": {"isRedelivery": false},
      "timestamp": {{millis}},
      "mode": "active",
      "source": {"type": "user", "userId": "U00000000000000000000000000000002"},
      "replyToken": "00000000000000000000000000example",
      "message": {
        "id": "{{object}}",
        "type": "text",
        "quoteToken": "example",
        "text": "Is order 1001 paid?"
      }
    }
  ]
}`
