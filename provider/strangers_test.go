package provider

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// What strangers can cause, who have no secret and no genuine request.

// TestBraintreeSignsOnceForAStranger: everybody knows the public key, which is in the answer to a
// challenge, and can repeat it. The payload is signed once, however often.
func TestBraintreeSignsOnceForAStranger(t *testing.T) {
	p := Braintree("pub:priv")
	claiming := func(entries int) *hookonce.Request {
		form := url.Values{"bt_payload": {"QQ=="}, "bt_signature": {strings.TrimSuffix(strings.Repeat("pub|0&", entries), "&")}}
		return &hookonce.Request{Method: "POST", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: []byte(form.Encode()), Now: now}
	}
	const most = 256 // there is one for each key of the account
	few, many := claiming(2), claiming(most)
	one := testing.AllocsPerRun(10, func() { reason(t, p, few) })
	if n := testing.AllocsPerRun(10, func() { reason(t, p, many) }); n > one+10 {
		t.Errorf("%v allocations for 2 entries, %v for %d", one, n, most)
	}
	if why := reason(t, p, claiming(most+1)); why.Reason != hookonce.ReasonSignatureMalformed {
		t.Error(why)
	}
}

// TestOneCertificateHasOneAddress: it is fetched once, however its address is spelt.
func TestOneCertificateHasOneAddress(t *testing.T) {
	p, n, request := snsWorld(t)
	for address, ok := range map[string]bool{
		snsCert: true,
		"https://SNS.EU-central-1.amazonAWS.com/SimpleNotificationService-1.pem": true,
		"HTTPS://sns.eu-central-1.amazonaws.com/SimpleNotificationService-1.pem": true,
		snsCert + "?": false,
		snsCert + "#": false,
		"https://sns.eu-central-1.amazonaws.com:443/SimpleNotificationService-1.pem": false,
		"https://sns.eu-central-1.amazonaws.com/%53impleNotificationService-1.pem":   false,
		"https://sns.eu-central-1.amazonaws.com//SimpleNotificationService-1.pem":    false,
		"https://sns.eu-central-1.amazonaws.com/./SimpleNotificationService-1.pem":   false,
	} {
		if _, err := p.Open(request("2", map[string]any{"Type": "Notification", "SigningCertURL": address})); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked := n.asked.Load(); asked != 1 {
		t.Errorf("%d fetches of one certificate", asked)
	}
}
