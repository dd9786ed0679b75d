package provider

import "github.com/hookonce/hookonce/provider/spec"

// Adyen returns the provider for Adyen's standard (payment) webhooks in JSON. The secrets are the HMAC
// keys of the webhook, hexadecimal. It panics if a secret is missing or not hexadecimal.
//
// Each item carries a signature of its own, and all of them must be right. The key of an item is made
// of its eventCode, pspReference and success, which the signature covers, and of its content, most of
// which it does not cover: Adyen sends corrections under the same three, and the latest counts. No time
// is signed.
func Adyen(secrets ...string) *spec.Provider {
	return must(spec.New(adyenSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func adyenSpec() spec.Spec {
	const item = "item:$.NotificationRequestItem."
	return spec.Spec{
		Name:   "adyen",
		Title:  "Adyen",
		Secret: "the webhook's HMAC key, in hexadecimal",
		Verify: []spec.Verify{{
			Hash:      spec.SHA256,
			Key:       spec.KeyHex,
			Encoding:  spec.Base64,
			Signature: spec.Signature{In: item + "additionalData.hmacSignature"},
			Sign: []spec.Value{
				item + "pspReference", item + "originalReference", item + "merchantAccountCode", item + "merchantReference",
				item + "amount.value", item + "amount.currency", item + "eventCode", item + "success",
			},
			Join:    ":",
			Covers:  spec.CoversFields,
			PerItem: true,
		}},
		Split: &spec.Split{Items: []spec.Value{"json:$.notificationItems[*]"}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{item + "eventCode", item + "pspReference", item + "success"}},
			Type:     []spec.Value{item + "eventCode"},
			Time:     []spec.Moment{at(item+"eventDate", spec.RFC3339)},
			Resource: []spec.Value{item + "originalReference", item + "pspReference"},
			Tenant:   []spec.Value{item + "merchantAccountCode"},
		},
		Dedup: spec.Dedup{OnRepeat: spec.KeepLatest, Retry: spec.Stable},
		Order: &spec.Order{
			By:       item + "eventDate",
			Unit:     spec.RFC3339,
			Advisory: true,
		},
		Answer:  spec.Answer{Status: 202, Deadline: 10 * second},
		Limits:  spec.Limits{Retry: 30 * day},
		Headers: []string{"HmacSignature", "Protocol", "Adyen-*"},
		Example: spec.Template{ID: "QFQTPCQ8HXSKGK82", Type: "AUTHORISATION", Body: adyenExample},
		Sources: []spec.Source{
			stated("signature of each item", "Adyen/adyen-go-api-library: src/hmacvalidator"),
			stated("batches", "Adyen documentation, Webhooks"),
			reported("eventCode and pspReference repeat, the latest event counts", "docs.adyen.com, Handle webhook events, quoted"),
			stated("success is part of what tells events apart", "Adyen/adyen-magento2: Model/Notification.php"),
			stated("retries, any 2xx accepts", "docs.adyen.com, Troubleshoot webhooks"),
			reported("deadline", "Adyen documentation, quoted"),
		},
		Traps: []string{
			"pspReference alone as the key merges an authorisation with its capture and its refund",
			"a copy may differ from the first in eventDate and other fields: dropping it keeps stale data, a hash of it as the key lets retries through",
			"an authorisation that failed may be followed by one that succeeded: success is part of the key",
			"the signature covers eight fields and neither eventDate nor reason nor the rest: ask Adyen before you act on those",
			"retries are sent one after another for up to 30 days: an event that is never accepted holds up all that follow",
			"a new HMAC key takes a while to be used: accept the old one beside it",
			"merchantReference is chosen by the shop and need not be unique",
			"only JSON is known here: have the webhook send neither SOAP nor forms",
		},
	}
}

const adyenExample = `{
  "live": "false",
  "notificationItems": [
    {
      "NotificationRequestItem": {
        "additionalData": {"expiryDate": "03/2030", "cardSummary": "1111"},
        "amount": {"currency": "EUR", "value": 4200},
        "eventCode": "{{type}}",
        "eventDate": "{{time}}",
        "merchantAccountCode": "ExampleShop",
        "merchantReference": "order-1001",
        "operations": ["CANCEL", "CAPTURE", "REFUND"],
        "paymentMethod": "visa",
        "pspReference": "{{id}}",
        "reason": "033899:1111:03/2030",
        "success": "true"
      }
    }
  ]
}`
