package provider

import "github.com/hookonce/hookonce/provider/spec"

// HubSpot returns the provider for HubSpot webhooks with version 3 of their signature, in the header
// X-HubSpot-Signature-v3. Where HubSpot sends older ones only, see [HubSpotLegacy]. The URL is the target
// URL exactly as it is registered with HubSpot, because the signature covers it; empty means the URL of
// the request, which is right only where no proxy changes it. The secrets are the client secrets of the
// app. It panics if a secret is missing or empty, or the URL is not one.
//
// The key is made of portal, subscription, eventId, objectId, time and property, all signed. The signed
// time of the attempt may be five minutes off in either direction.
func HubSpot(url string, secrets ...string) *spec.Provider {
	return must(spec.New(hubspotSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

// hubspotEscapes are the characters that HubSpot signs as they are where the URL has their escapes.
const hubspotEscapes = ":/?@!$'()*,;"

func hubspotSpec() spec.Spec {
	verify := timed(headerMAC("X-HubSpot-Signature-V3", "", spec.Base64, "method", "url", "body", "ts"), "header:X-HubSpot-Request-Timestamp", spec.Millis, 5*minute)
	verify.Unescape = hubspotEscapes
	return spec.Spec{
		Name:   "hubspot",
		Title:  "HubSpot",
		Secret: "the app's client secret",
		Verify: []spec.Verify{verify},
		Split:  &spec.Split{Items: []spec.Value{"json:$[*]"}},
		Event: spec.Extract{
			Key: [][]spec.Value{{
				"item:$.portalId", "item:$.subscriptionId", "item:$.eventId", "item:$.objectId", "item:$.occurredAt", "item:$.propertyName?",
			}},
			Subscription: []spec.Value{"item:$.subscriptionId"},
			Type:         []spec.Value{"item:$.subscriptionType", "item:$.eventType"},
			Time:         []spec.Moment{at("item:$.occurredAt", spec.Millis)},
			Resource:     []spec.Value{"item:$.objectId"},
			Tenant:       []spec.Value{"item:$.portalId"},
			Attempt:      []spec.Value{"item:$.attemptNumber"},
		},
		// attemptNumber counts up.
		Dedup: spec.Dedup{Same: []spec.Value{
			"item:$.subscriptionType", "item:$.eventType", "item:$.objectId", "item:$.occurredAt",
			"item:$.propertyName", "item:$.propertyValue", "item:$.changeSource", "item:$.changeFlag",
		}},
		Answer: spec.Answer{Deadline: 5 * second},
		Limits: spec.Limits{Retry: day}, // 10 attempts
		// https://developers.hubspot.com/docs/api/webhooks/validating-requests
		Headers: []string{"X-HubSpot-Signature", "X-HubSpot-Signature-Version", "X-HubSpot-Signature-V3", "X-HubSpot-Request-Timestamp", "X-HubSpot-*"},
		Example: spec.Template{ID: "3816279340", Type: "contact.propertyChange", Object: "123", Body: hubspotExample},
		Sources: []spec.Source{
			stated("signatures", "HubSpot/hubspot-api-nodejs; HubSpot documentation, Validating requests"),
			stated("escapes in the URL that are undone before it is signed", "HubSpot documentation, Validating requests: table of version 3"),
			stated("eventId is not unique, fields, batches of up to 100, retries, deadline", "HubSpot documentation, Webhooks API"),
			reported("a retry is signed anew", "inferred: the signature covers attemptNumber, which counts up"),
			reported("parts of the key", "inferred: eventId with everything that tells one change from another"),
			reported("Retry-After with 429 is honoured", "HubSpot developer forum"),
		},
		Traps: []string{
			"eventId is not guaranteed to be unique: alone as the key it loses events",
			"a hash of the item as the key lets retries through: attemptNumber changes",
			"HubSpot sends the older signatures beside that of version 3, and they sign no time: they are not accepted here, or a captured request could be replayed with those alone",
			"some escapes in the URL are undone before it is signed (%3A, %2F, %3F, %40, %21, %24, %27, %28, %29, %2A, %2C, %3B), which its libraries leave to their callers",
			"behind a proxy the request's URL differs from the registered one, and everything is rejected",
			"deleting a contact for privacy sends two events, and so does an association: one for each side",
			"an item without objectId passes through unkeyed",
		},
	}
}

const hubspotExample = `[
  {
    "eventId": "{{id}}",
    "subscriptionId": 12345,
    "portalId": 62515,
    "appId": 54321,
    "occurredAt": {{millis}},
    "subscriptionType": "{{type}}",
    "attemptNumber": {{retry}},
    "objectId": {{object}},
    "propertyName": "lifecyclestage",
    "propertyValue": "customer",
    "changeSource": "CRM_UI",
    "sourceId": "userId:1001"
  }
]`
