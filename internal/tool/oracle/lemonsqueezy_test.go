package oracle

import (
	"context"

	"github.com/NdoleStudio/lemonsqueezy-go"

	"github.com/hookonce/hookonce"
)

// lemonsqueezySDK is the community's library: Lemon Squeezy publishes none for Go.
func lemonsqueezySDK() sdk {
	library := lemonsqueezy.New(lemonsqueezy.WithSigningSecret(secret))
	return sdk{
		module:   "github.com/NdoleStudio/lemonsqueezy-go",
		provider: "lemon-squeezy",
		accepts: func(req *hookonce.Request) bool {
			return library.Webhooks.Verify(context.Background(), req.Header.Get("X-Signature"), req.Body)
		},
	}
}
