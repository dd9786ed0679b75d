package provider

import "github.com/hookonce/hookonce/provider/spec"

// CircleCI returns the provider for CircleCI webhooks. The secrets are those of the webhook. It panics
// if a secret is missing or empty.
//
// The key is the event's id, which the signature covers. No time is signed.
func CircleCI(secrets ...string) *spec.Provider {
	return must(spec.New(circleciSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func circleciSpec() spec.Spec {
	verify := bodyMAC("Circleci-Signature", "v1=", spec.Hex)
	verify.Signature.Split = ","
	return spec.Spec{
		Name:      "circleci",
		Title:     "CircleCI",
		Secret:    "the webhook's secret token",
		OwnSecret: true,
		Verify:    []spec.Verify{verify},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type", "header:Circleci-Event-Type"},
			Time:     []spec.Moment{at("json:$.happened_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.job.id", "json:$.workflow.id"},
			Tenant:   []spec.Value{"json:$.project.slug"},
		},
		Answer:  spec.Answer{Deadline: 10 * second},
		Headers: []string{"Circleci-*"},
		Example: spec.Template{ID: "3888f21b-eaa7-38e3-8f3d-75a63bba8895", Type: "workflow-completed", Object: "fda08377-0000-4000-8000-000000001001", Body: circleciExample},
		Sources: []spec.Source{
			stated("signature, key, fields, answer, deadline", "circleci/circleci-docs: webhooks"),
			stated("the secret is the receiver's choice", "circleci/circleci-docs: webhooks, field Secret token"),
			notSourced("how long retries go on"),
		},
		Traps: []string{
			"the signature's header may list several versions: only v1 is known here",
			"the id of a workflow as the key loses all of its events but the first",
			"CircleCI retries, and does not state for how long: keep keys for as long as you can",
		},
	}
}

const circleciExample = `{
  "id": "{{id}}",
  "type": "{{type}}",
  "happened_at": "{{time}}",
  "webhook": {"id": "cf8c4fdd-0000-4000-8000-000000001001", "name": "Example webhook"},
  "project": {"id": "84996744-0000-4000-8000-000000001001", "name": "shop", "slug": "github/example/shop"},
  "organization": {"id": "f22b6566-0000-4000-8000-000000001001", "name": "example"},
  "pipeline": {"id": "1285fe1d-0000-4000-8000-000000001001", "number": 1001},
  "workflow": {
    "id": "{{object}}",
    "name": "build-and-deploy",
    "status": "success",
    "created_at": "{{time}}",
    "stopped_at": "{{time}}"
  }
}`
