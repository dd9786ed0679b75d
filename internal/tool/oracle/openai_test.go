package oracle

import (
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/webhooks"

	"github.com/hookonce/hookonce"
)

func openaiSDK() sdk {
	library := webhooks.NewWebhookService(option.WithWebhookSecret(whsec))
	return sdk{
		module:   "github.com/openai/openai-go/v3",
		provider: "openai",
		secret:   whsec,
		other:    otherWhsec,
		accepts: func(req *hookonce.Request) bool {
			return library.VerifySignature(req.Body, req.Header) == nil
		},
	}
}
