package provider

import "github.com/hookonce/hookonce/provider/spec"

// Shippo returns the provider for Shippo webhooks. The secrets are the HMAC secrets that Shippo hands
// out on request, or tokens of your own that you add to the webhook's URL as ?token=...; the latter
// prove who sends but sign nothing. It panics if a secret is missing or empty.
//
// Shippo is not known to send an id: events pass through unkeyed. Those of one type with the same data have
// the same Event.Logical, by which the gateway marks the second of a day as a logical duplicate, or drops it where its
// source lists the type. A time is signed, but not checked against a tolerance
// unless [spec.Settings] has one: Shippo does not state that retries are signed anew.
func Shippo(secrets ...string) *spec.Provider {
	return must(spec.New(shippoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func shippoSpec() spec.Spec {
	return spec.Spec{
		Name:   "shippo",
		Title:  "Shippo",
		Secret: "the HMAC secret that Shippo hands out on request, or a token of your own in the webhook's URL as ?token=...",
		Verify: []spec.Verify{
			timedMAC("Shippo-Auth-Signature", spec.Seconds, 0),
			{Kind: spec.Token, Signature: spec.Signature{In: "query:token"}},
		},
		Event: spec.Extract{Type: []spec.Value{"json:$.event"}},
		Dedup: spec.Dedup{Logical: []spec.Logical{{
			Key:    []spec.Value{"json:$.event", "hash:json:$.data"},
			Window: day,
		}}},
		Headers: []string{"Shippo-*"},
		Example: spec.Template{ID: "2d4a5b1c9f6e4f3a8b7c6d5e4f3a2b1c", Type: "track_updated", Body: shippoExample},
		Sources: []spec.Source{
			stated("token in the URL, HMAC on request", "docs.goshippo.com/tracking/webhook-security"),
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			notSourced("key"),
			notSourced("retries"),
		},
		Traps: []string{
			"no id is known: nothing is dropped as a copy, so handlers have to bear repetitions; the gateway marks them as logical duplicates",
			"the tracking number as the key loses every status after the first",
			"the signature has to be asked for; the token in the URL binds nothing and ends up in the logs of proxies",
		},
	}
}

const shippoExample = `{
  "event": "{{type}}",
  "test": true,
  "data": {
    "carrier": "usps",
    "tracking_number": "9205590164917312751089",
    "messages": [],
    "address_from": {"city": "Berlin", "state": "", "zip": "10115", "country": "DE"},
    "address_to": {"city": "Hamburg", "state": "", "zip": "20095", "country": "DE"},
    "eta": "{{time}}",
    "tracking_status": {
      "object_id": "{{id}}",
      "status": "TRANSIT",
      "status_details": "The parcel is on its way.",
      "status_date": "{{time}}",
      "location": {"city": "Berlin", "state": "", "zip": "10115", "country": "DE"}
    },
    "tracking_history": []
  }
}`
