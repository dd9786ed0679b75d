package oracle

import (
	"github.com/line/line-bot-sdk-go/v8/linebot/webhook"

	"github.com/hookonce/hookonce"
)

func lineSDK() sdk {
	return sdk{
		module:   "github.com/line/line-bot-sdk-go/v8",
		provider: "line",
		accepts: func(req *hookonce.Request) bool {
			return webhook.ValidateSignature(secret, req.Header.Get("X-Line-Signature"), req.Body)
		},
		laxer: map[string]string{"another byte in the signature": strayBits},
	}
}
