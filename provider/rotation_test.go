package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// TestPersonaRotatesItsSecret: while a secret is changed, the header has two pairs, and whoever knows both secrets is served.
func TestPersonaRotatesItsSecret(t *testing.T) {
	const body = `{"data":{"type":"event","id":"evt_1"}}`
	pair := func(secret string) string {
		return signed(t, Persona(secret), body).Header.Get("Persona-Signature")
	}
	req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now}
	req.Header.Set("Persona-Signature", pair("fake-old")+" "+pair("fake-new"))
	if ev := one(t, Persona("fake-old", "fake-new"), req); ev.Key != "evt_1" || !ev.KeySigned {
		t.Errorf("%+v", ev)
	}
	reason(t, Persona("fake-other"), req)
	req.Body = []byte(strings.Replace(body, "evt_1", "evt_2", 1))
	reason(t, Persona("fake-old", "fake-new"), req)
}
