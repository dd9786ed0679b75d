package oracle

import (
	"github.com/razorpay/razorpay-go/utils"

	"github.com/hookonce/hookonce"
)

func razorpaySDK() sdk {
	return sdk{
		module:   "github.com/razorpay/razorpay-go",
		provider: "razorpay",
		accepts: func(req *hookonce.Request) bool {
			return utils.VerifyWebhookSignature(string(req.Body), req.Header.Get("X-Razorpay-Signature"), secret)
		},
	}
}
