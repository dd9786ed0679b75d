package provider

import "github.com/hookonce/hookonce/provider/spec"

// AzureDevOps returns the provider for the web hooks of Azure DevOps' service hooks. Nothing is signed: the subscription has a
// name and a password for HTTP basic authentication, and the secrets are those, as user:password. It panics if a secret
// is missing or not of that form.
//
// The key is made of the subscription and the id of the event. Nothing is signed.
func AzureDevOps(secrets ...string) *spec.Provider {
	return must(spec.New(azureDevOpsSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func azureDevOpsSpec() spec.Spec {
	return spec.Spec{
		Name:      "azure-devops",
		Title:     "Azure DevOps",
		Secret:    "the user:password that was entered in the subscription",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Basic}},
		Event: spec.Extract{
			// Subscriptions may ask for different details of one event.
			Key:          [][]spec.Value{{"json:$.subscriptionId", "json:$.id"}},
			Subscription: []spec.Value{"json:$.subscriptionId"},
			Type:         []spec.Value{"json:$.eventType"},
			Time:         []spec.Moment{at("json:$.createdDate", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.resource.pullRequestId", "json:$.resource.workItemId", "json:$.resource.id", "json:$.resource.pushId"},
			Tenant:       []spec.Value{"json:$.resourceContainers.project.id"},
		},
		// createdDate and the notification's number are those of the notification.
		Dedup: spec.Dedup{Same: []spec.Value{"json:$.id", "json:$.eventType", "json:$.resource"}},
		// A build and a work item may have the number of a pull request: only those are in an order.
		Order:   &spec.Order{By: "json:$.createdDate", Unit: spec.RFC3339, Scope: []spec.Value{"json:$.resource.pullRequestId"}, Advisory: true},
		Headers: []string{"Content-Type"},
		Example: spec.Template{ID: "03c164c2-8912-4d5e-8009-3707d5f83734", Type: "git.pullrequest.updated", Object: "1001", Body: azureDevOpsExample},
		Sources: []spec.Source{
			stated("basic authentication, over HTTPS only; how much of the resource is sent is a setting", "MicrosoftDocs/azure-devops-docs: docs/service-hooks/services/webhooks.md"),
			stated("fields", "learn.microsoft.com/azure/devops/service-hooks/events"),
			stated("the user and the password are the receiver's choice", "MicrosoftDocs/azure-devops-docs: docs/service-hooks/services/webhooks.md"),
			reported("key", "inferred: id is the event's, and each subscription has a notification of its own for it"),
			notSourced("retries"),
			notSourced("whether a retry keeps id and notificationId"),
			notSourced("deadline"),
		},
		Traps: []string{
			"notificationId counts the notifications of one subscription: alone as the key it loses those of every other subscription",
			"resource.id is the build or the work item: as the key it loses every change but the first",
			"nothing is signed: whoever sees one request can send others",
			"one event that two subscriptions ask for comes twice, and has two keys",
			"a subscription whose requests fail often is restricted, and shown as such in its history",
		},
	}
}

const azureDevOpsExample = `{
  "subscriptionId": "aaaa0a0a-0000-4000-8000-00000000f001",
  "notificationId": 17,
  "id": "{{id}}",
  "eventType": "{{type}}",
  "publisherId": "tfs",
  "message": {"text": "Example Person updated pull request {{object}}"},
  "detailedMessage": {"text": "Example Person updated pull request {{object}} in example/shop"},
  "resource": {
    "repository": {"id": "4bc14d40-0000-4000-8000-00000000b001", "name": "shop"},
    "pullRequestId": {{object}},
    "status": "active",
    "title": "Answer the retried request",
    "creationDate": "{{time}}",
    "sourceRefName": "refs/heads/answer",
    "targetRefName": "refs/heads/main",
    "mergeStatus": "succeeded"
  },
  "resourceVersion": "1.0",
  "resourceContainers": {
    "collection": {"id": "c12d0eb8-0000-4000-8000-00000000e001"},
    "account": {"id": "f844ec47-0000-4000-8000-00000000e002"},
    "project": {"id": "be9b3917-0000-4000-8000-00000000e003"}
  },
  "createdDate": "{{time}}"
}`
