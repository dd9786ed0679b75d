package oracle

import (
	goshopify "github.com/bold-commerce/go-shopify/v4"

	"github.com/hookonce/hookonce"
)

// shopifySDK is the community's library: Shopify publishes none for Go.
func shopifySDK() sdk {
	library := goshopify.App{ApiSecret: secret}
	return sdk{
		module:   "github.com/bold-commerce/go-shopify/v4",
		provider: "shopify",
		accepts: func(req *hookonce.Request) bool {
			return library.VerifyWebhookRequest(wire(req))
		},
	}
}
