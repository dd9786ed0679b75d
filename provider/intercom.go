package provider

import "github.com/hookonce/hookonce/provider/spec"

// Intercom returns the provider for Intercom webhooks. The secrets are the client secrets of the app. It
// panics if a secret is missing or empty. The HEAD request that validates the URL is answered.
//
// The key is the id of the notification, which the signature covers. No time is signed.
func Intercom(secrets ...string) *spec.Provider {
	return must(spec.New(intercomSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func intercomSpec() spec.Spec {
	v := bodyMAC("X-Hub-Signature", "sha1=", spec.Hex)
	v.Hash = spec.SHA1
	return spec.Spec{
		Name:   "intercom",
		Title:  "Intercom",
		Secret: "the app's client secret",
		Verify: []spec.Verify{v},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.topic"},
			Time:     []spec.Moment{at("json:$.created_at", spec.Seconds)},
			Resource: []spec.Value{"json:$.data.item.id"},
			Tenant:   []spec.Value{"json:$.app_id"},
			Attempt:  []spec.Value{"json:$.delivery_attempts"},
		},
		// delivery_status, delivery_attempts, delivered_at and first_sent_at are about the attempts.
		Dedup:      spec.Dedup{Same: []spec.Value{"json:$.topic", "json:$.app_id", "json:$.created_at", "json:$.data"}},
		Answer:     spec.Answer{Deadline: 5 * second},
		Handshakes: []spec.Handshake{{Method: "HEAD"}},
		// https://developers.intercom.com/docs/canvas-kit#signing-notifications
		Headers: []string{"X-Body-Signature", "Intercom-*", "X-Intercom-*"},
		Example: spec.Template{ID: "notif_ccd8a4d0-f965-11e3-a367-c779cae3e1b3", Type: "conversation.user.replied", Object: "1001", Body: intercomExample},
		Sources: []spec.Source{
			stated("topic, pauses and suspension", "developers.intercom.com/docs/webhooks/webhook-notifications"),
			stated("HEAD", "developers.intercom.com/docs/webhooks/setting-up-webhooks"),
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("key, fields about the attempts, deadline", "hookdeck/webhook-skills: skills/intercom-webhooks/references/overview.md; automatelab.tech/saas-webhooks/intercom"),
			notSourced("retries"),
		},
		Traps: []string{
			"the body counts the attempts: a hash of it as the key lets retries through",
			"the header X-Hub-Signature holds a SHA-1 here; GitHub's, Bitbucket's and Jira's of that name hold a SHA-256",
			"the URL can only be registered while HEAD is answered with 200",
			"a thousand errors in a row within 15 minutes pause the webhook, a week of errors suspends it",
		},
	}
}

const intercomExample = `{
  "type": "notification_event",
  "app_id": "a0example",
  "data": {
    "type": "notification_event_data",
    "item": {
      "type": "conversation",
      "id": "{{object}}",
      "created_at": {{unix}},
      "updated_at": {{unix}},
      "state": "open",
      "read": false,
      "priority": "not_priority",
      "source": {"type": "conversation", "id": "5001", "delivered_as": "customer_initiated", "body": "<p>Is order 1001 paid?</p>"},
      "contacts": {"type": "contact.list", "contacts": [{"type": "contact", "id": "64e0example0001"}]}
    }
  },
  "links": {},
  "id": "{{id}}",
  "topic": "{{type}}",
  "delivery_status": "pending",
  "delivery_attempts": {{attempt}},
  "delivered_at": 0,
  "first_sent_at": {{unix}},
  "created_at": {{unix}},
  "self": null
}`
