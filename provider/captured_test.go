package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// What somebody who got hold of one genuine request can make of it.

// TestAdyenItemsAreReadByAllAlike: Go's encoding/json, and others, take "Success" for "success".
func TestAdyenItemsAreReadByAllAlike(t *testing.T) {
	p := fake(t, "adyen")
	const before, after = `{"live":"false","notificationItems":[`, `]}`
	genuine := string(signed(t, p, before+`{"NotificationRequestItem":{"additionalData":{},"amount":{"currency":"EUR","value":1000},`+
		`"eventCode":"AUTHORISATION","merchantAccountCode":"Shop","merchantReference":"","pspReference":"8515","success":"false"}}`+after).Body)
	item := strings.TrimSuffix(strings.TrimPrefix(genuine, before), after)
	const evil = `{"NotificationRequestItem":{"pspReference":"9999","success":"true"}}`
	for name, body := range map[string]string{
		"a field":             strings.Replace(genuine, `"success":"false"`, `"success":"false","Success":"true"`, 1),
		"a field left out":    strings.Replace(genuine, `"success":"false"`, `"success":"false","OriginalReference":"9999"`, 1),
		"a part of the sum":   strings.Replace(genuine, `"value":1000`, `"value":1000,"Value":999999`, 1),
		"the whole item":      before + `{"notificationRequestItem":{"success":"true"},` + item[1:] + after,
		"all items":           strings.TrimSuffix(genuine, "}") + `,"NotificationItems":[` + evil + `]}`,
		"items in an object":  `{"notificationItems":{"0":` + evil + `},` + item[1:],
		"items of a stranger": before + evil + "," + item + after,
	} {
		if body == genuine {
			t.Fatalf("%s: nothing is changed", name)
		}
		reason(t, p, &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now})
	}
}
