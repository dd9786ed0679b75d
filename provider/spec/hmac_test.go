package spec

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// The message of the second test case of RFC 2202 and RFC 4231, whose key is Jefe.
const jefesMessage = "what do ya want for nothing?"

// jefesMACs are the HMACs of that message.
var jefesMACs = map[Hash]string{
	SHA1:   "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
	SHA256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
	SHA512: "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
}

// jefes is the key, in every form that a secret may have.
var jefes = []struct {
	form KeyForm
	text string
}{
	{KeyUTF8, "Jefe"}, {KeyBase64, "SmVmZQ=="}, {KeyBase64, "SmVmZQ"}, {KeyHex, "4a656665"}, {KeyHex, "4A656665"},
	{KeyWhsec, "whsec_SmVmZQ=="}, {KeyWhsec, "whsec_SmVmZQ"}, {KeyWhsec, "SmVmZQ=="}, {KeyWhsec, "v1,whsec_SmVmZQ=="}, {KeyWhsec, "v1,SmVmZQ"},
	{KeyWhsecOnly, "whsec_SmVmZQ=="}, {KeyWhsecOnly, "v1,whsec_SmVmZQ"}, {KeyNFKD, "Jefe"}, {KeyNFKD, "\uff2a\uff45\uff46\uff45"},
}

// encoded writes a hexadecimal sum in another encoding, without the code that is tested.
func encoded(t testing.TB, e Encoding, sum string) string {
	t.Helper()
	raw, err := hex.DecodeString(sum)
	if err != nil {
		t.Fatal(err)
	}
	switch e {
	case Base64:
		return base64.StdEncoding.EncodeToString(raw)
	case Base64URL:
		return strings.TrimRight(base64.URLEncoding.EncodeToString(raw), "=")
	}
	return sum
}

// signedAs returns a request whose X-Signature is that text.
func signedAs(line, body string) *hookonce.Request {
	return &hookonce.Request{Header: http.Header{"X-Signature": {line}}, Body: []byte(body), Now: now}
}

// TestHMAC: every hash with every form of key in every encoding makes what the standards say.
func TestHMAC(t *testing.T) {
	for hash, sum := range jefesMACs {
		for _, key := range jefes {
			for _, e := range []Encoding{Hex, Base64, Base64URL} {
				s := plain()
				s.Verify[0].Hash, s.Verify[0].Key, s.Verify[0].Encoding = hash, key.form, e
				p := build1(t, s, Settings{Secrets: Secrets(key.text)})
				want := encoded(t, e, sum)
				if got := request(t, p, jefesMessage).Header.Get("X-Signature"); got != want {
					t.Errorf("%s with a key in %s is %s, want %s", hash, key.form, got, want)
				}
				if _, err := p.Open(signedAs(want, jefesMessage)); err != nil {
					t.Errorf("%s with a key in %s in %s: %v", hash, key.form, e, err)
				}
				rejected(t, p, signedAs(want, jefesMessage+" "), hookonce.ReasonSignatureMismatch)
			}
		}
	}
}

// TestKeyIsTheSHA1OfTheSecret has no published vector.
func TestKeyIsTheSHA1OfTheSecret(t *testing.T) {
	s := plain()
	s.Verify[0].Key, s.Verify[0].Hash = KeySHA1, SHA1
	key := sha1.Sum([]byte("Jefe"))
	h := hmac.New(sha1.New, key[:])
	h.Write([]byte(jefesMessage))
	if _, err := build1(t, s, Settings{Secrets: Secrets("Jefe")}).Open(signedAs(hex.EncodeToString(h.Sum(nil)), jefesMessage)); err != nil {
		t.Error(err)
	}
}

// TestSecretsOfTheWrongForm: the complaint says what is wrong, and nothing of the secret.
func TestSecretsOfTheWrongForm(t *testing.T) {
	for _, c := range []struct {
		form       KeyForm
		text, want string
	}{
		{KeyUTF8, "", "is empty"}, {KeyUTF8, " hidden", "white space"}, {KeyUTF8, "hidden\n", "white space"},
		{KeyHex, "hidden", "is not hexadecimal"}, {KeyHex, "abc", "is not hexadecimal"},
		{KeyBase64, "hidden!", "is not base64"}, {KeyBase64, "====", "is empty"},
		{KeyWhsec, "whsec_hidden!", "is not base64 after whsec_"}, {KeyWhsec, "whsec_", "is empty"}, {KeyWhsec, "whpk_AAAA", "no secret has the right form"}, {KeyWhsec, "v1a,whpk_AAAA", "no secret has the right form"},
		{KeyWhsecOnly, "SmVmZQ==", "no secret has the right form"}, {KeyWhsecOnly, "whsec_hidden!", "no secret has the right form"},
		{KeyWhsecOnly, "whsec_", "no secret has the right form"}, {KeyWhsecOnly, "whsec_====", "no secret has the right form"}, {KeyWhsecOnly, "", "is empty"},
		{KeyPEM, "hidden!", "is not PEM"}, {KeyPEM, " \n", "is empty"},
	} {
		s := plain()
		s.Verify[0].Key = c.form
		_, err := New(s, Settings{Secrets: Secrets(c.text)})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s %q: %v", c.form, c.text, err)
		}
	}
}

// TestSpellingsOfASignature: a signature has one spelling, or a rejected one could be written anew until
// it passes as another request.
func TestSpellingsOfASignature(t *testing.T) {
	sum := jefesMACs[SHA512]
	std, url := encoded(t, Base64, sum), encoded(t, Base64URL, sum)
	for _, c := range []struct {
		encoding Encoding
		line     string
		want     string
	}{
		{Hex, strings.ToUpper(sum), hookonce.ReasonSignatureMalformed},
		{Hex, sum[:126], hookonce.ReasonSignatureMalformed},
		{Hex, sum + "00", hookonce.ReasonSignatureMalformed},
		{Hex, "0x" + sum[:126], hookonce.ReasonSignatureMalformed},
		{Hex, std, hookonce.ReasonSignatureMalformed},
		{Base64, strings.TrimRight(std, "="), hookonce.ReasonSignatureMalformed},
		{Base64, url + "==", hookonce.ReasonSignatureMalformed},
		{Base64, std[:len(std)-3] + "x==", hookonce.ReasonSignatureMismatch}, // other bits that do not count
		{Base64URL, url + "==", hookonce.ReasonSignatureMalformed},
		{Base64URL, strings.TrimRight(std, "="), hookonce.ReasonSignatureMalformed},
	} {
		s := plain()
		s.Verify[0].Hash, s.Verify[0].Encoding = SHA512, c.encoding
		p := build1(t, s, Settings{Secrets: Secrets("Jefe")})
		if c.line == encoded(t, c.encoding, sum) {
			t.Fatalf("%s is the usual spelling", c.line)
		}
		rejected(t, p, signedAs(c.line, jefesMessage), c.want)
	}
}

// TestPlainHash: the secret may come first, last or in between. The sums are those of sha256sum(1).
func TestPlainHash(t *testing.T) {
	for _, c := range []struct {
		sign []Value
		join string
		sum  string
	}{
		{[]Value{"secret", "body"}, "", "6a06ebd34285e0a24cb1a058023e966cc91f64228173a3e486319f6f73c0d283"},
		{[]Value{"body", "secret"}, "", "831e4fc4f857ba2653bf8cb58da9c6aeef9bb8973c4af69a33ec5c92717e91a1"},
		{[]Value{"const:v0", "secret", "method", "body"}, ":", "e1dae1dc3362cdd998a7c7e1c784d7c524cfdc1a640d362f8241313914cb19b8"},
	} {
		s := plain()
		s.Verify[0].Kind, s.Verify[0].Sign, s.Verify[0].Join = PlainHash, c.sign, c.join
		p := build1(t, s, Settings{Secrets: Secrets("Jefe")})
		if _, err := p.Open(signedAs(c.sum, `{"id":"1"}`)); err != nil {
			t.Errorf("%v: %v", c.sign, err)
		}
		rejected(t, p, signedAs(c.sum, `{"id":"2"}`), hookonce.ReasonSignatureMismatch)
		rejected(t, build1(t, s, Settings{Secrets: Secrets("Jeff")}), signedAs(c.sum, `{"id":"1"}`), hookonce.ReasonSignatureMismatch)
	}
}

// TestNobodyAppendsToAHash: a hash that begins with the secret can be continued by whoever saw it. What it
// takes between the body and the rest is not JSON, so a body is refused even if nothing is read from it.
func TestNobodyAppendsToAHash(t *testing.T) {
	extended := "{\"id\":\"1\"}\x80\x00\x00\x00\x70{\"id\":\"2\"}"
	for _, c := range []struct {
		sign []Value
		key  Value
		ok   bool
	}{
		{[]Value{"secret", "body"}, "json:$.id", false},
		{[]Value{"secret", "body"}, "header:X-Id", false},
		{[]Value{"secret", "body", "const:x"}, "form:id", false},
		{[]Value{"body", "secret"}, "header:X-Id", true},
	} {
		s := plain()
		s.Verify[0].Kind, s.Verify[0].Sign, s.Event.Key = PlainHash, c.sign, [][]Value{{c.key}}
		p := build1(t, s, Settings{})
		if _, err := p.Open(request(t, p, extended)); (err == nil) != c.ok {
			t.Errorf("%v with the key %s: %v", c.sign, c.key, err)
		}
		open(t, p, `{"id":"1"}`)
	}
	lines := batch("json:$[*]")
	lines.Verify[0].Kind, lines.Verify[0].Sign, lines.Split.Lines = PlainHash, []Value{"secret", "body"}, true
	p := build1(t, lines, Settings{})
	rejected(t, p, request(t, p, strings.Replace(extended, "p{", "\n{", 1)), hookonce.ReasonSignatureMismatch)
	if d := open(t, p, "{\"id\":\"1\"}\n{\"id\":\"2\"}"); len(d.Events) != 2 {
		t.Error(d)
	}
}

// TestEverySecretIsTried: with every signature that a request carries.
func TestEverySecretIsTried(t *testing.T) {
	s := plain()
	s.Verify[0].Signature.Split = " "
	for number, secret := range []string{"one", "two", "three"} {
		theirs := request(t, build1(t, s, Settings{Secrets: Secrets("other")}), "{}").Header.Get("X-Signature")
		genuine := request(t, build1(t, s, Settings{Secrets: Secrets(secret)}), "{}").Header.Get("X-Signature")
		p := build1(t, s, Settings{Secrets: Secrets("one", "two", "three")})
		for _, line := range []string{genuine, theirs + " " + genuine, genuine + " " + theirs} {
			d, err := p.Open(signedAs(line, "{}"))
			if err != nil || d.Proof.Secret != number+1 || d.Proof.Covers != "body" {
				t.Errorf("secret %d: %+v, %v", number+1, d, err)
			}
		}
		rejected(t, p, signedAs(theirs, "{}"), hookonce.ReasonSignatureMismatch)
	}
}

// TestRejectionsHoldNoSecret: neither that nor the signature that would have been right.
func TestRejectionsHoldNoSecret(t *testing.T) {
	for _, kind := range []Kind{HMAC, PlainHash, Token, Basic} {
		s := plain()
		s.Verify[0].Kind = kind
		switch kind {
		case PlainHash:
			s.Verify[0].Sign = []Value{"body", "secret"}
		case Token, Basic:
			s.Verify[0].Sign = nil
		}
		p := build1(t, s, Settings{Secrets: Secrets("hidden:secret")})
		right := request(t, p, "{}").Header.Get("X-Signature")
		for _, wrong := range []string{"", "x", strings.Repeat("0", 64), "Basic eDp5"} {
			_, err := p.Open(signedAs(wrong, "{}"))
			if err == nil {
				t.Fatalf("%s: %q is accepted", kind, wrong)
			}
			for _, verb := range []string{"%v", "%+v", "%#v"} {
				if text := fmt.Sprintf(verb, err); strings.Contains(text, right) || strings.Contains(text, "hidden") {
					t.Errorf("%s: %s", kind, text)
				}
			}
		}
	}
}
