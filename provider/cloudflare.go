package provider

import "github.com/hookonce/hookonce/provider/spec"

// Cloudflare returns the provider for the generic webhooks of Cloudflare's notifications. The secrets are those of the webhook,
// which Cloudflare sends along in cf-webhook-auth: nothing of the request is signed. It panics if a secret is missing or
// empty.
//
// The key is made of the policy, the correlation id, the state of the alert, the time, in seconds, and the data. No time is
// signed.
func Cloudflare(secrets ...string) *spec.Provider {
	return must(spec.New(cloudflareSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func cloudflareSpec() spec.Spec {
	return spec.Spec{
		Name:      "cloudflare",
		Title:     "Cloudflare notifications",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:Cf-Webhook-Auth"}}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.policy_id", "json:$.alert_correlation_id", "json:$.alert_event", "json:$.ts", "hash:json:$.data"}},
			Type:     []spec.Value{"json:$.alert_type"},
			Action:   []spec.Value{"json:$.alert_event"},
			Time:     []spec.Moment{at("json:$.ts", spec.Seconds)},
			Resource: []spec.Value{"json:$.alert_correlation_id"},
			Tenant:   []spec.Value{"json:$.account_id"},
		},
		Order:   &spec.Order{By: "json:$.ts", Unit: spec.Seconds, Advisory: true},
		Headers: []string{"Cf-Webhook-Auth"},
		Example: spec.Template{ID: "origin-1001", Type: "health_check_status_notification.ALERT_STATE_EVENT_START", Object: "000eaa907ed24e78946d3a93adb2ae57", Body: cloudflareExample},
		Sources: []spec.Source{
			stated("header, the secret is the receiver's choice", "cloudflare/cloudflare-docs: src/content/docs/notifications/get-started/configure-webhooks.mdx"),
			stated("fields, the correlation id groups related alerts, ts is when the notification was generated", "cloudflare/cloudflare-docs: src/content/docs/notifications/reference/webhook-payload-schema.mdx"),
			reported("key", "inferred: a notification is generated once, and has that moment in it"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"alert_correlation_id groups the start and the end of an alert: as the key it loses the end",
			"nothing is signed: whoever sees one request can send others",
			"the test that is sent when a webhook is saved has a text and nothing else: it passes through unkeyed",
			"policy_id is missing in some kinds of alerts: those pass through unkeyed",
		},
	}
}

const cloudflareExample = `{
  "name": "Origin of the shop",
  "text": "The origin of the shop is unhealthy",
  "data": {
    "account_name": "Example",
    "health_check_id": "{{id}}",
    "health_check_name": "shop",
    "new_status": "Unhealthy",
    "old_status": "Healthy",
    "origin_ip": "192.0.2.1",
    "reason": "HTTP timeout occurred",
    "zone_name": "shop.example"
  },
  "ts": {{unix}},
  "account_id": "9035f53656c247e895c5a6939ae8a0e0",
  "policy_id": "749b911ea5d04344a58e45edd099b328",
  "policy_name": "Origin of the shop",
  "alert_type": "{{event}}",
  "alert_correlation_id": "{{object}}",
  "alert_event": "{{action}}"
}`
