package provider

import "github.com/hookonce/hookonce/provider/spec"

// AzureEventGrid returns the provider for webhooks of Azure Event Grid with a secret in the query of the URL, as the
// parameter code: register https://shop.example/hooks?code=SECRET. It panics if a secret is missing or empty. The
// validations of both schemas, Event Grid's and CloudEvents', are answered. For deliveries that Microsoft Entra protects
// see [AzureEventGridEntra].
//
// The key is the event's source, or its topic, with its id. Nothing is signed.
func AzureEventGrid(secrets ...string) *spec.Provider {
	return must(spec.New(azureEventGridSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func azureEventGridSpec() spec.Spec {
	return spec.Spec{
		Name:      "azure-event-grid",
		Title:     "Azure Event Grid",
		Secret:    "the parameter code in the query of the URL that the event subscription calls",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "query:code"}}},
		Split:     &spec.Split{Items: []spec.Value{"json:$[*]"}},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"item:$.source", "item:$.id"}, {"item:$.topic", "item:$.id"}},
			Subscription: []spec.Value{"header:Aeg-Subscription-Name"},
			Type:         []spec.Value{"item:$.eventType", "item:$.type"},
			Time:         []spec.Moment{at("item:$.eventTime", spec.RFC3339), at("item:$.time", spec.RFC3339)},
			Resource:     []spec.Value{"item:$.subject"},
			Tenant:       []spec.Value{"item:$.topic", "item:$.source"},
			Attempt:      []spec.Value{"header:Aeg-Delivery-Count"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		// After 400, 401, 403 and 413 an event is dropped, or goes to the dead letters.
		Answer: spec.Answer{Deadline: 30 * second, Reject: 503},
		Limits: spec.Limits{Retry: day},
		Handshakes: []spec.Handshake{
			{
				When:        []spec.Match{{Value: "header:Aeg-Event-Type", Is: "SubscriptionValidation"}},
				Echo:        "json:$[0].data.validationCode",
				ContentType: "application/json",
				Body:        `{"validationResponse":"{{echo}}"}`,
			},
			{
				Method: "OPTIONS",
				When:   []spec.Match{{Value: "header:WebHook-Request-Origin", Is: "eventgrid.azure.net"}},
				Echo:   "header:WebHook-Request-Origin",
				Header: map[string]string{"WebHook-Allowed-Origin": "{{echo}}", "WebHook-Allowed-Rate": "*"},
			},
		},
		Headers: []string{"Aeg-Event-Type", "Aeg-Metadata-Version", "Aeg-Data-Version", "Aeg-Output-Event-Id", "Aeg-*"},
		Example: spec.Template{
			ID: "93902694-901e-008f-6f95-7153a806873c", Type: "Microsoft.Storage.BlobCreated", Object: "/blobServices/default/containers/orders/blobs/1001",
			Header: map[string]string{"Aeg-Event-Type": "Notification", "Aeg-Subscription-Name": "EXAMPLE", "Aeg-Delivery-Count": "0"},
			Body:   azureEventGridExample,
		},
		Sources: []spec.Source{
			stated("secret in the query, Entra", "MicrosoftDocs/azure-docs: articles/event-grid/security-authentication.md"),
			stated("validation of the endpoint", "MicrosoftDocs/azure-docs: articles/event-grid/webhook-event-delivery.md; cloudevents/spec: http-webhook.md, section 4"),
			stated("at least once, no order, retries, deadline, batches, fields, which statuses end the retries", "MicrosoftDocs/azure-docs: articles/event-grid/delivery-and-retry.md; learn.microsoft.com/azure/event-grid/delivery-and-retry"),
			stated("source and id are the same in every copy of an event (CloudEvents)", "cloudevents/spec: spec.md, id"),
			reported("topic and id are, too", "inferred: the id is in the event as it was published, which is what is retried"),
			reported("headers", "Event Grid documentation of delivery properties: aeg-subscription-name, aeg-delivery-count, aeg-event-type"),
		},
		Traps: []string{
			"the secret is in the URL: proxies that log URLs log it",
			"nothing is signed: whoever has seen one request can send others",
			"202 is no answer to a validation, and neither is anything after 30 seconds",
			"an event subscription with CloudEvents asks with OPTIONS: a proxy in front must let that through",
			"events without an id or a topic (custom input schemas) pass through unkeyed",
			"domains and system topics differ in what topic is: ids are compared within it",
		},
	}
}

const azureEventGridExample = `[
  {
    "id": "{{id}}",
    "topic": "/subscriptions/00000000-0000-4000-8000-000000001001/resourceGroups/example/providers/Microsoft.Storage/storageAccounts/example",
    "subject": "{{object}}",
    "eventType": "{{type}}",
    "eventTime": "{{time}}",
    "dataVersion": "",
    "metadataVersion": "1",
    "data": {
      "api": "PutBlob",
      "contentType": "application/json",
      "contentLength": 524288,
      "blobType": "BlockBlob",
      "url": "https://example.blob.core.windows.net/orders/1001"
    }
  }
]`
