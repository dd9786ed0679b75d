package oracle

import (
	"github.com/nicklaw5/helix/v2"

	"github.com/hookonce/hookonce"
)

// twitchSDK is the community's library: Twitch publishes none for Go.
func twitchSDK() sdk {
	return sdk{
		module:   "github.com/nicklaw5/helix/v2",
		provider: "twitch",
		wrap:     inJSON,
		accepts: func(req *hookonce.Request) bool {
			return helix.VerifyEventSubNotification(secret, req.Header, string(req.Body))
		},
		laxer: map[string]string{"signed -1h0m0s from now": noTolerance, "signed 1h0m0s from now": noTolerance},
	}
}
