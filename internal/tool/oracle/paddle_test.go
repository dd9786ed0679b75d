package oracle

import (
	paddle "github.com/PaddleHQ/paddle-go-sdk/v4"

	"github.com/hookonce/hookonce"
)

func paddleSDK() sdk {
	library := paddle.NewWebhookVerifier(secret)
	return sdk{
		module:   "github.com/PaddleHQ/paddle-go-sdk/v4",
		provider: "paddle",
		accepts: func(req *hookonce.Request) bool {
			ok, err := library.Verify(wire(req))
			return ok && err == nil
		},
	}
}
