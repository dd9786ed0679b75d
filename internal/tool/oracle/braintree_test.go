package oracle

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/braintree-go/braintree-go"

	"github.com/hookonce/hookonce"
)

// braintreeSDK is the community's library: Braintree publishes none for Go.
func braintreeSDK() sdk {
	gateway := braintree.New(braintree.Sandbox, "fake-merchant", "fakepublickey", "fakeprivatekey")
	return sdk{
		module:   "github.com/braintree-go/braintree-go",
		provider: "braintree",
		secret:   "fakepublickey:fakeprivatekey",
		other:    "fakepublickey:anotherprivatekey",
		accepts: func(req *hookonce.Request) bool {
			_, err := gateway.WebhookNotification().ParseRequest(wire(req))
			return err == nil
		},
		sign: func(req *hookonce.Request) error {
			form, err := url.ParseQuery(string(req.Body))
			if err != nil {
				return err
			}
			signature, err := gateway.WebhookTesting().SignPayload(form.Get("bt_payload"))
			form.Set("bt_signature", signature)
			req.Body = []byte(form.Encode())
			return err
		},
		wrap: func(req *hookonce.Request, noise []byte) {
			text := "<notification><timestamp type=\"datetime\">2026-02-03T04:05:06Z</timestamp><kind>check</kind><subject><noise>" +
				base64.StdEncoding.EncodeToString(noise) + "</noise></subject></notification>"
			payload := base64.StdEncoding.EncodeToString([]byte(text))
			var lines strings.Builder // Braintree breaks lines
			for len(payload) > 60 {
				lines.WriteString(payload[:60] + "\n")
				payload = payload[60:]
			}
			lines.WriteString(payload + "\n")
			req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
			req.Body = []byte(url.Values{"bt_payload": {lines.String()}}.Encode())
		},
	}
}
