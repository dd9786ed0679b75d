package oracle

import (
	"github.com/workos/workos-go/v4/pkg/webhooks"

	"github.com/hookonce/hookonce"
)

// namesIgnored: a name is what tells a signature from other entries.
const namesIgnored = "the library takes the entries for time and signature by their place, whatever their names"

func workosSDK() sdk {
	library := webhooks.NewClient(secret)
	return sdk{
		module:   "github.com/workos/workos-go/v4",
		provider: "workos",
		accepts: func(req *hookonce.Request) (ok bool) {
			defer func() { ok = ok && recover() == nil }() // the library slices without looking
			_, err := library.ValidatePayload(req.Header.Get("WorkOS-Signature"), string(req.Body))
			return err == nil
		},
		laxer: map[string]string{
			"another byte in the signature": namesIgnored,
			"another case in the signature": namesIgnored,
			"signed 4m0s from now":          pastOnly,
			"signed 6m0s from now":          pastOnly,
			"signed 1h0m0s from now":        pastOnly,
		},
		stricter: map[string]string{
			"a comma after the signature":    emptyEntry,
			"signed -4m0s from now":          signedOnce,
			"signed -6m0s from now":          signedOnce,
			"signed -1h0m0s from now":        signedOnce,
			"one byte less in the signature": "the library slices at fixed places; the space after the comma says nothing",
		},
	}
}
