package oracle

import (
	"net/url"

	"github.com/twilio/twilio-go/client"

	"github.com/hookonce/hookonce"
)

func twilioSDK() sdk {
	library := client.NewRequestValidator(secret)
	return sdk{
		module:   "github.com/twilio/twilio-go",
		provider: "twilio",
		header:   "X-Twilio-Signature",
		accepts: func(req *hookonce.Request) bool {
			return library.ValidateBody(req.URL, req.Body, req.Header.Get("X-Twilio-Signature"))
		},
		wrap: func(req *hookonce.Request, noise []byte) {
			form := url.Values{"MessageSid": {"SM00000000000000000000000000000001"}, "MessageStatus": {"sent"}, "Body": {string(noise)}}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Body = []byte(form.Encode())
		},
	}
}
