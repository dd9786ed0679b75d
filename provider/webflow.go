package provider

import "github.com/hookonce/hookonce/provider/spec"

// Webflow returns the provider for Webflow's webhooks. The secrets are those of the webhook, or the client secret of the app
// that created it. It panics if a secret is missing or empty.
//
// Events have no id. The key is made of the kind of event and its content, where that has a time: when a form was submitted,
// or an item, page or site was changed. Events without one, such as those of orders and the inventory, pass through
// unkeyed: their content comes back when a number does. The time of the request, in milliseconds, is signed and may be 45
// minutes in the past, which covers the retries, and five minutes ahead.
func Webflow(secrets ...string) *spec.Provider {
	return must(spec.New(webflowSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

// webflowRetry is how long Webflow retries: three times, ten minutes apart.
const webflowRetry = 40 * minute

func webflowSpec() spec.Spec {
	v := timed(headerMAC("X-Webflow-Signature", "", spec.Hex, "ts", "const::", "body"), "header:X-Webflow-Timestamp", spec.Millis, 5*minute)
	return spec.Spec{
		Name:   "webflow",
		Title:  "Webflow",
		Secret: "the secret that Webflow returned when the webhook was created, or the client secret of the app that created it",
		Verify: []spec.Verify{signedOnce(v, webflowRetry)},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.triggerType", "json:$.payload.submittedAt", "hash:json:$.payload"},
				{"json:$.triggerType", "json:$.payload.lastUpdated", "hash:json:$.payload"},
				{"json:$.triggerType", "json:$.payload.publishedOn", "hash:json:$.payload"},
				{"json:$.triggerType", "json:$.payload.deletedOn", "hash:json:$.payload"},
				{"json:$.triggerType", "json:$.payload.createdOn", "hash:json:$.payload"},
			},
			Type: []spec.Value{"json:$.triggerType"},
			Time: []spec.Moment{
				at("json:$.payload.submittedAt", spec.RFC3339), at("json:$.payload.lastUpdated", spec.RFC3339), at("json:$.payload.publishedOn", spec.RFC3339),
				at("json:$.payload.deletedOn", spec.RFC3339), at("json:$.payload.createdOn", spec.RFC3339),
			},
			Resource: []spec.Value{"json:$.payload.formId", "json:$.payload.id", "json:$.payload.pageId", "json:$.payload.commentId", "json:$.payload.orderId", "json:$.payload.siteId"},
			Tenant:   []spec.Value{"json:$.payload.siteId"},
		},
		Answer:  spec.Answer{Status: 200},
		Limits:  spec.Limits{Retry: webflowRetry},
		Headers: []string{"X-Webflow-*"},
		Example: spec.Template{ID: "6321ca84df3949bfc6752327", Type: "form_submission", Object: "65429eadebe8a9f3a30f62d0", Body: webflowExample},
		Sources: []spec.Source{
			stated("signature", "webflow/js-webflow-api: src/wrapper/WebhooksClient.ts"),
			stated("fields; which events have a time", "webflow/js-webflow-api: src/api/types, the payload of each trigger"),
			reported("unit of the time, tolerance of five minutes, which secret", "Webflow documentation, quoted by hookdeck/webhook-skills: skills/webflow-webhooks"),
			reported("three more attempts ten minutes apart, redirects and other statuses than 200 fail", "Webflow documentation, quoted"),
			reported("key", "inferred: an event has no id; its content with a time in it tells one from another"),
			notSourced(onceOrAnew),
			notSourced("deadline"),
		},
		Traps: []string{
			"payload.id is the item or the order: as the key it loses every change but the first",
			"events of orders and the inventory have no time in them: a quantity that comes back to what it was looks like a copy, so they pass through unkeyed",
			"webhooks that were made in the dashboard are not signed: create them with the API",
			"only the status 200 counts as success",
			"the time is in milliseconds",
		},
	}
}

const webflowExample = `{
  "triggerType": "{{type}}",
  "payload": {
    "id": "{{id}}",
    "name": "Contact",
    "siteId": "65427cf400e02b306eaa049c",
    "formId": "{{object}}",
    "formElementId": "4e038d2c-0000-4000-8000-00000000c001",
    "data": {"First Name": "Example", "Email": "person@example.com", "Message": "Is order 1001 paid?"},
    "schema": [{"fieldName": "First Name", "fieldType": "FormTextInput", "fieldElementId": "285042f7-0000-4000-8000-00000000c002"}],
    "submittedAt": "{{time}}"
  }
}`
