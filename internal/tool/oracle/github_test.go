package oracle

import (
	"github.com/google/go-github/v75/github"

	"github.com/hookonce/hookonce"
)

func githubSDK() sdk {
	return sdk{
		module:   "github.com/google/go-github/v75",
		provider: "github",
		accepts: func(req *hookonce.Request) bool {
			_, err := github.ValidatePayload(wire(req), []byte(secret))
			return err == nil
		},
		laxer: map[string]string{
			"another case in the signature": anyCase,
		},
	}
}
