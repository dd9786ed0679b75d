package provider

import "testing"

// TestGuess: what has to be guessed is what is secret in a secret; of public keys nothing is.
func TestGuess(t *testing.T) {
	const public = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n"
	for _, c := range []struct {
		provider, secret string
		want             int
	}{
		{"github", "a", 1}, {"github", "twelve-chars", 12},
		{"stripe", "whsec_ab", 8},   // all of the text is the key
		{"standard", "whsec_YQ", 2}, // only what follows is
		{"standard", "YWI", 3}, {"standard", "not base64!", -1}, {"standard", "whpk_YWI=", -1},
		{"adyen", "00ff", 4},
		{"chargebee", "a-long-user:1", 1}, {"chargebee", "none", 0},
		{"gitlab", "token", 5}, {"auth0", "Bearer x", 8}, {"twilio", "a", 1},
		{"hubspot", "a", 1}, {"mailgun", "abc", 3}, {"shippo", "abc", 3},
		{"discord", "00", -1}, {"telnyx", "YQ==", -1}, {"wise", public, -1}, {"sendgrid", "YQ==", -1},
	} {
		s, err := Lookup(c.provider)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Guess(c.secret); got != c.want {
			t.Errorf("%s: %q has %d characters to guess, want %d", c.provider, c.secret, got, c.want)
		}
	}
}
