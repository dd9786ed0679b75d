package oracle

import (
	"github.com/slack-go/slack"

	"github.com/hookonce/hookonce"
)

func slackSDK() sdk {
	return sdk{
		module:   "github.com/slack-go/slack",
		provider: "slack",
		accepts: func(req *hookonce.Request) bool {
			library, err := slack.NewSecretsVerifier(req.Header, secret)
			if err != nil {
				return false
			}
			_, err = library.Write(req.Body)
			return err == nil && library.Ensure() == nil
		},
		laxer: map[string]string{
			"another case in the signature": anyCase,
		},
	}
}
