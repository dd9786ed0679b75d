package oracle

import (
	"github.com/PagerDuty/go-pagerduty/webhookv3"

	"github.com/hookonce/hookonce"
)

func pagerdutySDK() sdk {
	return sdk{
		module:   "github.com/PagerDuty/go-pagerduty",
		provider: "pagerduty",
		accepts: func(req *hookonce.Request) bool {
			return webhookv3.VerifySignature(wire(req), secret) == nil
		},
		laxer:    map[string]string{"another case in the signature": anyCase},
		stricter: map[string]string{emptyBody: noEmptyBody},
	}
}
