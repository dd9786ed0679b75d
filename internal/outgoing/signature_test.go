package outgoing_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
)

func sign(t *testing.T, id string, at time.Time, body string, secrets ...string) (timestamp, signature string) {
	t.Helper()
	keys, err := outgoing.Keys(secrets)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	outgoing.Sign(h, keys, id, at, []byte(body))
	return h.Get(header.WebhookTimestamp), h.Get(header.WebhookSignature)
}

// The example of the Standard Webhooks specification, at its own time.
func TestSignatureOfTheSpecification(t *testing.T) {
	timestamp, signature := sign(t, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), `{"test": 2432232314}`, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; signature != want || timestamp != "1614265330" {
		t.Errorf("signed %s at %s, want %s", signature, timestamp, want)
	}
}

// While a secret is rotated there is a signature for each, in their order. A plain secret is its bytes.
func TestSignatureWithSeveralSecrets(t *testing.T) {
	one := func(secrets ...string) string {
		_, s := sign(t, "msg_1", time.Unix(1700000000, 0), "{}", secrets...)
		return s
	}
	if got, want := one("whsec_ZmFrZQ==", "a fake secret"), one("whsec_ZmFrZQ==")+" "+one("a fake secret"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if one("whsec_ZmFrZQ==") != one("fake") || one("fake") == one("ZmFrZQ==") {
		t.Error("only what follows whsec_ is base64")
	}
}

func TestBadSecrets(t *testing.T) {
	for _, secret := range []string{"", "whsec_", "whsec_not base64", "whsec_ZmFrZQ"} {
		if keys, err := outgoing.Keys([]string{"a fake secret", secret}); err == nil {
			t.Errorf("%q gives %q", secret, keys)
		}
	}
}

// facts are the headers of the example in docs/destinations.md, among others.
func facts() http.Header {
	return http.Header{
		"Content-Type":        {"application/json"},
		"Idempotency-Key":     {"billing:evt_1"},
		"Hookonce-Source":     {"billing"},
		"Hookonce-Key":        {"evt_1"},
		"Hookonce-Event-Type": {"payment_intent.succeeded"},
		"Hookonce-Attempt":    {"1"},
		"Hookonce-Signature":  {"is not signed itself"},
		"Webhook-Id":          {"msg_c891b5f0c1b6c8f6c8c92df3838c627c"},
	}
}

// What is signed must not change from version to version: programs in other languages make the same text.
func TestFactsText(t *testing.T) {
	const text = "hookonce-headers-v1\nmsg_c891b5f0c1b6c8f6c8c92df3838c627c\n1767323046\nhookonce-attempt:1\nhookonce-event-type:payment_intent.succeeded\n" +
		"hookonce-key:evt_1\nhookonce-source:billing\nidempotency-key:billing:evt_1\n"
	var want []string
	for _, key := range []string{"fake", "another fake"} {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	keys := [][]byte{[]byte("fake"), []byte("another fake")}
	h := facts()
	outgoing.Sign(h, keys, "msg_c891b5f0c1b6c8f6c8c92df3838c627c", time.Unix(1767323046, 0), nil)
	got := h.Get(header.HookonceSignature)
	if got != strings.Join(want, " ") {
		t.Errorf("%s, want %s", got, want)
	}
	for i, key := range keys {
		if n := outgoing.VerifyFacts([][]byte{[]byte("other"), key}, "msg_c891b5f0c1b6c8f6c8c92df3838c627c", "1767323046", facts(), got); n != 2 {
			t.Errorf("key %d verifies as %d", i, n)
		}
	}
}

// What is signed of headers is no signature of a body, and the other way round.
func TestSignaturesOfTwoKinds(t *testing.T) {
	keys := [][]byte{[]byte("fake")}
	at := time.Unix(1767323046, 0)
	h := facts()
	outgoing.Sign(h, keys, "msg_1", at, []byte("{}"))
	timestamp, body, headers := h.Get(header.WebhookTimestamp), h.Get(header.WebhookSignature), h.Get(header.HookonceSignature)
	if outgoing.Verify(keys, "msg_1", timestamp, []byte("{}"), body) != 1 || outgoing.VerifyFacts(keys, "msg_1", timestamp, facts(), body) != 0 {
		t.Error("the signature of a body")
	}
	for _, forged := range []string{"", "{}", "hookonce-attempt:1\n"} {
		if outgoing.Verify(keys, "msg_1", timestamp, []byte(forged), headers) != 0 {
			t.Errorf("the signature of headers is one of %q", forged)
		}
	}
}
