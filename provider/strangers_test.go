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
	few, many := claiming(2), claiming(maxBraintreeSignatures)
	one := testing.AllocsPerRun(10, func() { reason(t, p, few) })
	if n := testing.AllocsPerRun(10, func() { reason(t, p, many) }); n > one+10 {
		t.Errorf("%v allocations for 2 entries, %v for %d", one, n, maxBraintreeSignatures)
	}
	if why := reason(t, p, claiming(maxBraintreeSignatures+1)); why.Reason != hookonce.ReasonSignatureMalformed {
		t.Error(why)
	}
}
