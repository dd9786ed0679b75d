package outgoing_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
)

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
	got := outgoing.SignFacts(keys, "msg_c891b5f0c1b6c8f6c8c92df3838c627c", "1767323046", facts())
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
	timestamp, body := outgoing.Sign(keys, "msg_1", at, []byte("{}"))
	if outgoing.Verify(keys, "msg_1", timestamp, []byte("{}"), body) != 1 || outgoing.VerifyFacts(keys, "msg_1", timestamp, facts(), body) != 0 {
		t.Error("the signature of a body")
	}
	headers := outgoing.SignFacts(keys, "msg_1", timestamp, facts())
	for _, forged := range []string{"", "{}", "hookonce-attempt:1\n"} {
		if outgoing.Verify(keys, "msg_1", timestamp, []byte(forged), headers) != 0 {
			t.Errorf("the signature of headers is one of %q", forged)
		}
	}
}
