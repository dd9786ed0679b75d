package oracle

import (
	"time"

	"github.com/stripe/stripe-go/v84/webhook"

	"github.com/hookonce/hookonce"
)

func stripeSDK() sdk {
	return sdk{
		module:   "github.com/stripe/stripe-go/v84",
		provider: "stripe",
		accepts: func(req *hookonce.Request) bool {
			return webhook.ValidatePayload(req.Body, req.Header.Get("Stripe-Signature"), secret) == nil
		},
		sign: func(req *hookonce.Request) error {
			signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: req.Body, Secret: secret, Timestamp: time.Now()})
			req.Header.Set("Stripe-Signature", signed.Header)
			return nil
		},
		laxer: map[string]string{
			"another case in the signature": anyCase,
			"signed 6m0s from now":          pastOnly,
			"signed 1h0m0s from now":        pastOnly,
		},
		stricter: map[string]string{
			"a comma after the signature": emptyEntry,
		},
	}
}
