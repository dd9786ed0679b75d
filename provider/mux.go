package provider

import "github.com/hookonce/hookonce/provider/spec"

// Mux returns the provider for Mux webhooks. The secrets are the signing secrets of the webhook. It
// panics if a secret is missing or empty.
//
// The key is the id of the event, which the signature covers. The signed time may be five minutes off in
// either direction.
func Mux(secrets ...string) *spec.Provider {
	return must(spec.New(muxSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func muxSpec() spec.Spec {
	return spec.Spec{
		Name:   "mux",
		Title:  "Mux",
		Secret: "the webhook's signing secret",
		Verify: []spec.Verify{timedMAC("Mux-Signature", spec.Seconds, 5*minute)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.object.id", "json:$.data.id"},
			Tenant:   []spec.Value{"json:$.environment.id"},
		},
		// attempts lists the attempts.
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.type", "json:$.created_at", "json:$.object", "json:$.environment", "json:$.data"}},
		Answer:  spec.Answer{Deadline: 5 * second},
		Limits:  spec.Limits{Retry: day},
		Headers: []string{"Mux-*"},
		Example: spec.Template{ID: "3a56ac3d-33da-4366-855b-f592d898409d", Type: "video.asset.ready", Object: "0201example0001", Body: muxExample},
		Sources: []spec.Source{
			stated("key, fields, attempts", "muxinc/mux-node-sdk: src/resources/webhooks/webhooks.ts; docs.mux.com/webhook-reference"),
			stated("retries, copies although the answer was 2xx, deadline", "docs.mux.com/guides/system/listen-for-webhooks"),
			reported("a retry is signed anew", "inferred: the signature covers the list of attempts, which grows"),
			reported("signature, tolerance", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			notSourced("whether an older page's three days of retries still hold"),
		},
		Traps: []string{
			"the body lists the attempts: a hash of it as the key lets retries through",
			"copies may arrive even though the first was answered with success",
			"the deadline was ten seconds on older pages of the documentation, five on newer ones",
		},
	}
}

const muxExample = `{
  "type": "{{type}}",
  "object": {"type": "asset", "id": "{{object}}"},
  "id": "{{id}}",
  "environment": {"name": "Production", "id": "envexample"},
  "data": {
    "id": "{{object}}",
    "status": "ready",
    "duration": 23.857167,
    "aspect_ratio": "16:9",
    "max_resolution_tier": "1080p",
    "video_quality": "basic",
    "playback_ids": [{"policy": "public", "id": "uNbxnexample"}],
    "tracks": [
      {"type": "video", "id": "tv01example", "duration": 23.8238, "max_width": 1920, "max_height": 1080, "max_frame_rate": 29.97}
    ],
    "created_at": {{unix}}
  },
  "created_at": "{{time}}",
  "attempts": []
}`
