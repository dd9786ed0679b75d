package oracle

import (
	"encoding/base64"
	"encoding/json"

	"github.com/mailgun/mailgun-go/v4"

	"github.com/hookonce/hookonce"
)

func mailgunSDK() sdk {
	library := mailgun.NewMailgun("shop.example", "fake-api-key")
	library.SetWebhookSigningKey(secret)
	return sdk{
		module:   "github.com/mailgun/mailgun-go/v4",
		provider: "mailgun",
		accepts: func(req *hookonce.Request) bool {
			var payload mailgun.WebhookPayload
			if json.Unmarshal(req.Body, &payload) != nil {
				return false
			}
			ok, err := library.VerifyWebhookSignature(payload.Signature)
			return ok && err == nil
		},
		wrap: func(req *hookonce.Request, noise []byte) {
			req.Body = []byte(`{"signature":{"timestamp":"` + unix(req.Now) + `","token":"0123456789abcdef0123456789abcdef0123456789abcdef01","signature":""},` +
				`"event-data":{"event":"delivered","id":"evt_1","noise":"` + base64.StdEncoding.EncodeToString(noise) + `"}}`)
		},
	}
}
