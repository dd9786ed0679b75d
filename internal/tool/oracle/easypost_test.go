package oracle

import (
	"encoding/base64"

	"github.com/EasyPost/easypost-go/v4"

	"github.com/hookonce/hookonce"
)

func easypostSDK() sdk {
	const key = "fake sécret for tests" // not in NFKD
	library := easypost.New("fake-api-key")
	return sdk{
		module:   "github.com/EasyPost/easypost-go/v4",
		provider: "easypost",
		secret:   key,
		accepts: func(req *hookonce.Request) bool {
			headers := map[string]any{}
			for name := range req.Header {
				headers[name] = req.Header.Get(name)
			}
			_, err := library.ValidateWebhook(req.Body, headers, key)
			return err == nil
		},
		wrap: func(req *hookonce.Request, noise []byte) {
			req.Body = []byte(`{"id":"evt_1","object":"Event","description":"tracker.updated","status":"` + base64.StdEncoding.EncodeToString(noise) + `"}`)
		},
	}
}
