package provider

import "github.com/hookonce/hookonce/provider/spec"

// Vercel returns the provider for Vercel webhooks. The secrets are those of the webhook, or the client
// secrets of the integration. It panics if a secret is missing or empty.
//
// The id in the body is that of the delivery. The key is made of the type, the time at which the event
// was generated and a digest of the payload, all of which the signature covers. No time of the attempt
// is signed.
func Vercel(secrets ...string) *spec.Provider {
	return must(spec.New(vercelSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func vercelSpec() spec.Spec {
	v := bodyMAC("X-Vercel-Signature", "", spec.Hex)
	v.Hash = spec.SHA1
	return spec.Spec{
		Name:   "vercel",
		Title:  "Vercel",
		Secret: "the webhook's secret, or the client secret of the integration",
		Verify: []spec.Verify{v},
		Event: spec.Extract{
			Key:       [][]spec.Value{{"json:$.type", "json:$.createdAt", "hash:json:$.payload"}},
			AttemptID: []spec.Value{"json:$.id"},
			Type:      []spec.Value{"json:$.type"},
			Time:      []spec.Moment{at("json:$.createdAt", spec.Millis), at("json:$.createdAt", spec.RFC3339)},
			Resource:  []spec.Value{"json:$.payload.deployment.id", "json:$.payload.project.id"},
			Tenant:    []spec.Value{"json:$.payload.team.id"},
		},
		Dedup: spec.Dedup{Same: []spec.Value{"json:$.type", "json:$.createdAt", "json:$.payload"}},
		// no beginning: what else starts with X-Vercel- is about the visitors of a site, https://vercel.com/docs/headers/request-headers
		Headers: []string{"X-Vercel-Id"},
		Example: spec.Template{ID: "dpl_5WJWYSyB7BpgTj3EuwF37WMRBXBtaTkS", Type: "deployment.created", Body: vercelExample},
		Sources: []spec.Source{
			stated("id is that of the delivery, fields, time", "vercel.com/docs/webhooks/webhooks-api"),
			stated("signature", "vercel.com/docs/webhooks/webhooks-api; the SHA-1 in hexadecimal: webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("key", "inferred: of two with one type, moment and payload the second says nothing new"),
			notSourced("retries"),
			notSourced("whether a retry keeps id and createdAt"),
		},
		Traps: []string{
			"Vercel calls the id that of the delivery, and does not say whether a retry keeps it: it is not the key",
			"if a retry carries another createdAt, it passes as a new event",
		},
	}
}

const vercelExample = `{
  "id": "uev_example0001",
  "type": "{{type}}",
  "createdAt": {{millis}},
  "region": "fra1",
  "payload": {
    "team": {"id": "team_example0001"},
    "user": {"id": "user_example0001"},
    "project": {"id": "prj_example0001"},
    "deployment": {
      "id": "{{id}}",
      "name": "hooks",
      "url": "hooks-example.vercel.app",
      "meta": {"githubCommitRef": "main"}
    },
    "links": {
      "deployment": "https://vercel.com/example/hooks/example",
      "project": "https://vercel.com/example/hooks"
    },
    "plan": "pro",
    "target": "production",
    "regions": ["fra1"]
  }
}`
