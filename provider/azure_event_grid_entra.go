package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// AzureEventGridEntra returns the provider for webhooks of Azure Event Grid that Microsoft Entra protects, in Azure's
// public cloud. Each secret says whose tokens are accepted, as tenant_id:audience, with the application ID, or its URI, that
// the event subscription has. It panics if a secret is missing or has another form. The validations of both schemas are
// answered. Verification fetches the tenant's keys, from one address, and keeps them.
//
// The key is the event's source, or its topic, with its id. The token says that Event Grid sends, and covers nothing of
// the events.
func AzureEventGridEntra(secrets ...string) *spec.Provider {
	return must(spec.New(azureEventGridEntraSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func azureEventGridEntraSpec() spec.Spec {
	s := azureEventGridSpec()
	s.Name, s.Title = "azure-event-grid-entra", "Azure Event Grid with Entra"
	s.Secret, s.OwnSecret = "whose tokens are accepted, as tenant_id:audience", false
	s.Verify = []spec.Verify{{Kind: spec.Code, Scheme: scheme.AzureEventGrid(http.DefaultTransport)}}
	s.Sources = append(s.Sources,
		stated("a bearer token of Entra in every message, application of Event Grid", "MicrosoftDocs/azure-docs: articles/event-grid/secure-webhook-delivery.md; articles/event-grid/scripts/powershell-webhook-secure-delivery-azure-ad-app.md"),
		reported("issuers, keys, claims", "Microsoft identity platform: access token claims reference, as libraries that check such tokens follow it"),
		reported("the token is issued to Event Grid's application", "inferred: the role for deliveries is given to that"),
	)
	s.Traps = append([]string{
		"anybody in the tenant can have a token for the application: only those that were issued to Event Grid count here",
		"Azure Government and Azure in China have other issuers and another application, and are refused",
	}, s.Traps[1:]...)
	return s
}
