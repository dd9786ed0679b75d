package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// The key of a request that is not authentic is the one that Open finds in the genuine one, wherever it stands, or none.
func TestUnverifiedKey(t *testing.T) {
	stripe, github := provider.Stripe("whsec_fake_secret"), provider.GitHub("fake-secret")
	standard := provider.Standard("whsec_ZmFrZS1zZWNyZXQtZm9yLXRlc3RzLW9ubHk=")
	long := strings.Repeat(" ", 64<<10)
	for name, c := range map[string]struct {
		by         *spec.Provider
		header     map[string]string
		body, want string
	}{
		"in the body":                 {stripe, nil, `{"id":"evt_1","object":"event","type":"invoice.paid"}`, "evt_1"},
		"in a header":                 {github, map[string]string{"X-GitHub-Delivery": "guid-1"}, `{"action":"opened"}`, "guid-1"},
		"in a header, of no JSON":     {github, map[string]string{"X-GitHub-Delivery": "guid-1"}, `{`, "guid-1"},
		"in a header of a long body":  {github, map[string]string{"X-GitHub-Delivery": "guid-1"}, `{}` + long, "guid-1"},
		"what is signed as the id":    {standard, map[string]string{"Webhook-Id": "msg_1"}, `{}`, "msg_1"},
		"in a body that is too long":  {stripe, nil, `{"id":"evt_1"}` + long, ""},
		"in a body that is no JSON":   {stripe, nil, `{"id":"evt_1"`, ""},
		"twice":                       {stripe, nil, `{"id":"evt_1","id":"evt_2"}`, ""},
		"nothing":                     {stripe, nil, ``, ""},
		"longer than a key may be":    {stripe, nil, `{"id":"` + strings.Repeat("k", 300) + `"}`, hookonce.NormalKey(strings.Repeat("k", 300))},
		"with what steers a terminal": {stripe, nil, `{"id":"a\u001b[2J"}`, hookonce.NormalKey("a\x1b[2J")},
	} {
		t.Run(name, func(t *testing.T) {
			req := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: []byte(c.body)}
			for name, value := range c.header {
				req.Header.Set(name, value)
			}
			if got := c.by.UnverifiedKey(req); got != c.want {
				t.Errorf("the key is %q, want %q", got, c.want)
			}
		})
	}
}
