package outgoing_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
)

func sign(t *testing.T, id string, at time.Time, body string, secrets ...string) (timestamp, signature string) {
	t.Helper()
	keys, err := outgoing.Keys(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return outgoing.Sign(keys, id, at, []byte(body))
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
