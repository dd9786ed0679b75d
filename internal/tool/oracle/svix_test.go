package oracle

import (
	svix "github.com/svix/svix-webhooks/go"

	"github.com/hookonce/hookonce"
)

func svixSDK() sdk {
	library, _ := svix.NewWebhook(whsec)
	return sdk{
		module:   "github.com/svix/svix-webhooks",
		provider: "svix",
		secret:   whsec,
		other:    otherWhsec,
		accepts: func(req *hookonce.Request) bool {
			return library.Verify(req.Body, req.Header) == nil
		},
		sign: func(req *hookonce.Request) error {
			signature, err := library.Sign(req.Header.Get("Svix-Id"), req.Now, req.Body)
			req.Header.Set("Svix-Timestamp", unix(req.Now))
			req.Header.Set("Svix-Signature", signature)
			return err
		},
		laxer: map[string]string{
			"a comma after the signature": entryRest,
		},
	}
}
