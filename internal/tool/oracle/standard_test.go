package oracle

import (
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/hookonce/hookonce"
)

// Secrets of the form that Standard Webhooks and Svix decode, as long as OpenAI's library asks for.
const (
	whsec      = "whsec_ZmFrZSBzZWNyZXQgZm9yIHRoZSB0ZXN0cyBvbmx5"
	otherWhsec = "whsec_ZmFrZSBzZWNyZXQgb2Ygc29tZWJvZHkgZWxzZS4u"
)

func standardSDK() sdk {
	library, _ := standardwebhooks.NewWebhook(whsec)
	return sdk{
		module:   "github.com/standard-webhooks/standard-webhooks/libraries",
		provider: "standard",
		secret:   whsec,
		other:    otherWhsec,
		accepts: func(req *hookonce.Request) bool {
			return library.Verify(req.Body, req.Header) == nil
		},
		sign: func(req *hookonce.Request) error {
			signature, err := library.Sign(req.Header.Get("Webhook-Id"), req.Now, req.Body)
			req.Header.Set("Webhook-Timestamp", unix(req.Now))
			req.Header.Set("Webhook-Signature", signature)
			return err
		},
		laxer: map[string]string{"a comma after the signature": entryRest},
	}
}

// unix writes a time as most signatures have it.
func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
