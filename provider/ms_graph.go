package provider

import "github.com/hookonce/hookonce/provider/spec"

// MSGraph returns the provider for the change notifications of Microsoft Graph. The secrets are the
// clientState texts of the subscriptions. It panics if a secret is missing or empty.
//
// Each notification carries its clientState, and all of them must be right; nothing is signed. The key
// is the subscription and the notification's id. One without an id, such as a lifecycle notification,
// passes through unkeyed. The validation of the endpoint is answered.
func MSGraph(secrets ...string) *spec.Provider {
	return must(spec.New(msGraphSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func msGraphSpec() spec.Spec {
	return spec.Spec{
		Name:      "ms-graph",
		Title:     "Microsoft Graph",
		Secret:    "the clientState that the subscription was made with",
		OwnSecret: true,
		Verify: []spec.Verify{{
			Kind:      spec.Token,
			Signature: spec.Signature{In: "item:$.clientState"},
			PerItem:   true,
		}},
		Split: &spec.Split{Items: []spec.Value{"json:$.value[*]"}},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"item:$.subscriptionId", "item:$.id"}},
			Subscription: []spec.Value{"item:$.subscriptionId"},
			Type:         []spec.Value{"item:$.changeType", "item:$.lifecycleEvent"},
			Resource:     []spec.Value{"item:$.resourceData.id", "item:$.resource"},
			Tenant:       []spec.Value{"item:$.tenantId"},
		},
		Answer: spec.Answer{Status: 202, Deadline: 3 * second},
		Handshakes: []spec.Handshake{{
			Method:   "POST",
			When:     []spec.Match{{Value: "query:validationToken"}},
			Unsigned: true,
			Echo:     "query:validationToken",
		}},
		Limits:  spec.Limits{Retry: 4 * hour},
		Headers: []string{"Client-Request-Id", "Request-Id"},
		Example: spec.Template{ID: "0f6b2f0e-5d0e-4a6c-9c2b-3a4d8e7f1b20", Type: "updated", Object: "AAMkExample1001", Body: msGraphExample},
		Sources: []spec.Source{
			stated("clientState, handshake, answer, deadline, retries", "microsoftgraph/microsoft-graph-docs: Change notifications delivery, webhooks"),
			stated("id is unique for the notification and optional, fields", "learn.microsoft.com/graph/api/resources/changenotification"),
			notSourced("whether the id is the same in a retry"),
		},
		Traps: []string{
			"clientState is a secret that is part of every body: whoever sees a stored notification can send others",
			"the subscription's id alone as the key loses everything after the first notification",
			"the id is optional: notifications without one, and lifecycle notifications, pass through unkeyed",
			"whoever answers slowly is sent less; answer 5xx if the event could not be kept",
		},
	}
}

const msGraphExample = `{
  "value": [
    {
      "id": "{{id}}",
      "subscriptionId": "7f105c7d-0000-4000-8000-000000001001",
      "subscriptionExpirationDateTime": "{{time}}",
      "clientState": "",
      "changeType": "{{type}}",
      "resource": "users/example@example.com/messages/{{object}}",
      "resourceData": {
        "@odata.type": "#Microsoft.Graph.Message",
        "@odata.id": "users/example@example.com/messages/{{object}}",
        "@odata.etag": "W/\"ExampleEtag1001\"",
        "id": "{{object}}"
      },
      "tenantId": "84bd8158-0000-4000-8000-000000001001"
    }
  ]
}`
