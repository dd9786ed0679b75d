package oracle

import (
	"github.com/resend/resend-go/v3"

	"github.com/hookonce/hookonce"
)

// anyVersion: other versions are made with other keys, in other ways.
const anyVersion = "the library takes any version's signature for one of version 1"

func resendSDK() sdk {
	library := resend.NewClient("fake-api-key").Webhooks
	return sdk{
		module:   "github.com/resend/resend-go/v3",
		provider: "resend",
		secret:   whsec,
		other:    otherWhsec,
		accepts: func(req *hookonce.Request) bool {
			return library.Verify(&resend.VerifyWebhookOptions{
				Payload: string(req.Body),
				Headers: resend.WebhookHeaders{
					Id:        req.Header.Get("Svix-Id"),
					Timestamp: req.Header.Get("Svix-Timestamp"),
					Signature: req.Header.Get("Svix-Signature"),
				},
				WebhookSecret: whsec,
			}) == nil
		},
		laxer: map[string]string{
			"another byte in the signature":  anyVersion,
			"another case in the signature":  anyVersion,
			"one byte less in the signature": anyVersion,
		},
		stricter: map[string]string{emptyBody: noEmptyBody},
	}
}
