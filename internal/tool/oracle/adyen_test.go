package oracle

import (
	"encoding/json"
	"strings"

	"github.com/adyen/adyen-go-api-library/v7/src/hmacvalidator"
	"github.com/adyen/adyen-go-api-library/v7/src/webhook"

	"github.com/hookonce/hookonce"
)

func adyenSDK() sdk {
	const key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	return sdk{
		module:   "github.com/adyen/adyen-go-api-library/v7",
		provider: "adyen",
		secret:   key,
		other:    "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
		accepts: func(req *hookonce.Request) bool {
			request, err := webhook.HandleRequest(string(req.Body))
			if err != nil {
				return false
			}
			for _, item := range request.GetNotificationItems() {
				// Without additional data the library dereferences a nil pointer.
				if item.AdditionalData == nil || !hmacvalidator.ValidateHmac(*item, key) {
					return false
				}
			}
			return len(request.GetNotificationItems()) > 0
		},
		wrap: func(req *hookonce.Request, noise []byte) {
			reference, _ := json.Marshal(strings.ToValidUTF8(string(noise), "\uFFFD"))
			req.Body = []byte(`{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{},` +
				`"amount":{"currency":"EUR","value":4200},"eventCode":"AUTHORISATION","eventDate":"2026-02-03T04:05:06+01:00",` +
				`"merchantAccountCode":"ExampleAccount","merchantReference":` + string(reference) +
				`,"pspReference":"7914073381342284","reason":"","success":"true"}}]}`)
		},
	}
}
