package provider

import "github.com/hookonce/hookonce/provider/spec"

// LaunchDarkly returns the provider for LaunchDarkly's webhooks. The secrets are those of the webhook. It panics if a secret
// is missing or empty.
//
// The key is the id of the entry in the audit log that the webhook carries, which the signature covers. No time is signed
// by itself; that of the entry is in the signed body.
func LaunchDarkly(secrets ...string) *spec.Provider {
	return must(spec.New(launchDarklySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func launchDarklySpec() spec.Spec {
	return spec.Spec{
		Name:   "launchdarkly",
		Title:  "LaunchDarkly",
		Secret: "the webhook's secret",
		Verify: []spec.Verify{bodyMAC("X-LD-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$._id"}},
			Type:     []spec.Value{"json:$.kind"},
			Action:   []spec.Value{"json:$.accesses[0].action"},
			Time:     []spec.Moment{at("json:$.date", spec.Millis)},
			Resource: []spec.Value{"json:$.accesses[0].resource"},
		},
		Order:   &spec.Order{By: "json:$.date", Unit: spec.Millis, Advisory: true},
		Headers: []string{"X-LD-*"},
		Example: spec.Template{ID: "57c0a8e29969090743529965", Type: "flag.updateOn", Object: "proj/shop:env/production:flag/new-checkout", Body: launchDarklyExample},
		Sources: []spec.Source{
			stated("the body is an entry of the audit log, fields, no order: go by date", "launchdarkly.com/docs/api/webhooks"),
			stated("header of the signature, a secret is optional", "launchdarkly.com/docs/home/infrastructure/webhooks"),
			reported("hash and encoding of the signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts, quoting the sender"),
			reported("key", "inferred: _id is that of the entry, which one webhook carries once"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"a webhook without a secret is not signed, and is refused",
			"webhooks arrive in no order: the date in the body says which is newer",
			"one change of several environments makes an entry for each",
			"two webhooks to one endpoint send the same entry with the same id: use one source for each",
		},
	}
}

const launchDarklyExample = `{
  "_links": {"self": {"href": "/api/v2/auditlog/{{id}}", "type": "application/json"}},
  "_id": "{{id}}",
  "date": {{millis}},
  "accesses": [{"action": "{{action}}", "resource": "{{object}}"}],
  "kind": "{{event}}",
  "name": "New checkout",
  "description": "",
  "shortDescription": "",
  "member": {"_id": "569f183514f4432160000009", "email": "person@example.com", "firstName": "Example", "lastName": "Person"},
  "titleVerb": "turned on the flag",
  "title": "Example Person turned on the flag New checkout in Production",
  "target": {"name": "New checkout", "resources": ["{{object}}"]}
}`
