package provider

import "github.com/hookonce/hookonce/provider/spec"

// QuickBooks returns the provider for QuickBooks Online webhooks, both the batches of CloudEvents and
// the older notifications of companies and entities. The secrets are the verifier tokens of the app. It
// panics if a secret is missing or empty.
//
// The key of a CloudEvent is its source and id. The key of an older entity is made of company, kind,
// id, operation and time. All are signed. No time is signed.
func QuickBooks(secrets ...string) *spec.Provider {
	return must(spec.New(quickbooksSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func quickbooksSpec() spec.Spec {
	return spec.Spec{
		Name:   "quickbooks",
		Title:  "QuickBooks Online",
		Secret: "the app's webhooks verifier token",
		Verify: []spec.Verify{bodyMAC("Intuit-Signature", "", spec.Base64)},
		Split: &spec.Split{Items: []spec.Value{
			"json:$[*]",
			"json:$.eventNotifications[*].dataChangeEvent.entities[*]",
		}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"item:$.source", "item:$.id"},
				{"parent:$.realmId", "item:$.name", "item:$.id", "item:$.operation", "item:$.lastUpdated"},
			},
			Type:     []spec.Value{"item:$.type", "item:$.name"},
			Action:   []spec.Value{"item:$.operation"},
			Time:     []spec.Moment{at("item:$.time", spec.RFC3339), at("item:$.lastUpdated", spec.RFC3339)},
			Resource: []spec.Value{"item:$.intuitentityid", "item:$.id"},
			Tenant:   []spec.Value{"item:$.intuitaccountid", "parent:$.realmId"},
		},
		Answer: spec.Answer{Status: 200, Deadline: 3 * second},
		Limits: spec.Limits{Retry: 100 * minute}, // after 20, 30 and 50 minutes
		// https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks
		Headers: []string{"Intuit-Created-Time", "Intuit-Signature-Algorithm", "Intuit-Signature-Id", "Intuit-T-Id", "Intuit-Notification-Schema-Version", "Intuit-*"},
		Example: spec.Template{ID: "88cd52aa-33b6-4351-9aa4-47572edbd068", Type: "qbo.invoice.updated.v1", Object: "1001", Body: quickbooksExample},
		Sources: []spec.Source{
			stated("CloudEvents, fields", "developer.intuit.com, Webhooks; blogs.intuit.com, December 2024"),
			stated("source and id identify a CloudEvent", "cloudevents/spec: cloudevents/spec.md"),
			reported("signature, older notifications, answer and deadline", "Intuit documentation, quoted"),
			reported("retries", "Intuit documentation, quoted; old"),
		},
		Traps: []string{
			"the id in the older notifications is that of the entity: alone as the key it loses every later change",
			"only the status 200 counts as success, within three seconds; an endpoint that keeps failing is blacklisted",
			"changes are gathered before they are sent, and say what changed and not how: fetch the entity",
		},
	}
}

const quickbooksExample = `[
  {
    "specversion": "1.0",
    "id": "{{id}}",
    "source": "intuit.EXAMPLEEXAMPLEEXAMPLEEXAMPLE=",
    "type": "{{type}}",
    "datacontenttype": "application/json",
    "time": "{{time}}",
    "intuitentityid": "{{object}}",
    "intuitaccountid": "310687",
    "data": {}
  }
]`
