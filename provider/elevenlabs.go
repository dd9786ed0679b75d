package provider

import "github.com/hookonce/hookonce/provider/spec"

// ElevenLabs returns the provider for ElevenLabs' webhooks. The secrets are those of the webhook. It panics if a secret is
// missing or empty.
//
// Events have no id. The key is made of the type, the time of the event and the conversation, the request or the voice
// that it is about, all of which the signature covers. The signed time may be 75 minutes in the past, which
// covers the retries, and half an hour ahead.
func ElevenLabs(secrets ...string) *spec.Provider {
	return must(spec.New(elevenLabsSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

// elevenLabsRetry is how long ElevenLabs retries: after 30 s, 2, 8 and 30 minutes, each up to a tenth later.
const elevenLabsRetry = 45 * minute

func elevenLabsSpec() spec.Spec {
	verify := signedOnce(timedMAC("ElevenLabs-Signature", spec.Seconds, 30*minute), elevenLabsRetry)
	verify.Signature.Prefix = "v0="
	return spec.Spec{
		Name:   "elevenlabs",
		Title:  "ElevenLabs",
		Secret: "the webhook's secret, which begins with wsec_",
		Verify: []spec.Verify{verify},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.type", "json:$.event_timestamp", "json:$.data.conversation_id"},
				{"json:$.type", "json:$.event_timestamp", "json:$.data.request_id"},
				{"json:$.type", "json:$.event_timestamp", "json:$.data.voice_id"},
			},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.event_timestamp", spec.Seconds)},
			Resource: []spec.Value{"json:$.data.conversation_id", "json:$.data.request_id", "json:$.data.voice_id"},
			Tenant:   []spec.Value{"json:$.data.agent_id"},
		},
		// Where retries are on, they come after 5xx, 429 and 408: a wrong secret would lose events.
		Answer: spec.Answer{Reject: 503},
		// The audio of a whole conversation comes in one body; how long it may be is not stated.
		Limits:  spec.Limits{MaxBody: 25 << 20, Retry: elevenLabsRetry},
		Headers: []string{"ElevenLabs-*"},
		Example: spec.Template{ID: "conv_01examplexampleexample0001", Type: "post_call_transcription", Body: elevenLabsExample},
		Sources: []spec.Source{
			stated("signature, tolerance", "elevenlabs/elevenlabs-js: wrapper/webhooks"),
			stated("fields, only 200 accepts", "elevenlabs/elevenlabs-docs: fern/conversational-ai/pages/workflows/post-call-webhook.mdx"),
			stated("key (the event's time with an identifier that its kind of event has), retries", "elevenlabs.io/docs: eleven-api/resources/webhooks"),
			notSourced("the identifiers of events other than a conversation's: request_id and voice_id are as receivers read them"),
			notSourced(onceOrAnew),
			notSourced("how large an audio webhook can be"),
		},
		Traps: []string{
			"the transcription and the audio of a conversation are two events: the conversation's id alone as the key loses one of them",
			"most events come once and never again: retries are off unless the webhook has them switched on, and are of post_call_transcription alone, after 5xx, 429 and 408; look through the conversations that their API lists",
			"more than 100 events that wait for their retry are dropped",
			"audio webhooks hold the whole conversation in base64: the limit of the body here is 25 MiB",
			"ten failures in a row and a week without a success disable the webhook",
		},
	}
}

const elevenLabsExample = `{
  "type": "{{type}}",
  "event_timestamp": {{unix}},
  "data": {
    "agent_id": "agent_example1001",
    "conversation_id": "{{id}}",
    "status": "done",
    "transcript": [
      {"role": "agent", "message": "Hello, how can I help?", "time_in_call_secs": 0},
      {"role": "user", "message": "Where is order 1001?", "time_in_call_secs": 2}
    ],
    "metadata": {"start_time_unix_secs": {{unix}}, "call_duration_secs": 22, "cost": 296},
    "analysis": {"call_successful": "success", "transcript_summary": "A question about an order."}
  }
}`
