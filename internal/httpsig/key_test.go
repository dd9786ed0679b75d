package httpsig_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
)

// TestKeysSignAndVerify: what each kind of key signs its other half verifies, and no other key, for that text alone.
func TestKeysSignAndVerify(t *testing.T) {
	base := []byte(`"@method": POST`)
	for _, pair := range httpsigtest.Pairs() {
		t.Run(string(pair.Algorithm), func(t *testing.T) {
			signing, err := httpsig.SigningKey("k1", pair.Private)
			if err != nil {
				t.Fatal(err)
			}
			verifying, err := httpsig.VerifyingKey("k1", pair.Public)
			if err != nil {
				t.Fatal(err)
			}
			if pair.Algorithm == httpsig.RSAv15SHA256 {
				signing.Algorithm, verifying.Algorithm = pair.Algorithm, pair.Algorithm // RSA keys stand for PSS
			}
			if signing.Algorithm != pair.Algorithm || signing.ID != "k1" || signing.Shared() != (pair.Algorithm == httpsig.HMACSHA256) {
				t.Errorf("read as %v", signing)
			}
			signature, err := signing.Sign(base)
			if err != nil || !verifying.Verify(base, signature) || !signing.Verify(base, signature) {
				t.Fatalf("%v: it does not verify", err)
			}
			if verifying.Verify(append(bytes.Clone(base), ' '), signature) || verifying.Verify(base, signature[1:]) || verifying.Verify(base, nil) {
				t.Error("it verifies with another text, or cut off")
			}
			for _, other := range httpsigtest.Pairs() {
				key, err := httpsig.VerifyingKey("k1", other.Public)
				key.Algorithm = other.Algorithm
				if err != nil || other.Algorithm != pair.Algorithm && key.Verify(base, signature) {
					t.Errorf("it verifies with the key for %s: %v", other.Algorithm, err)
				}
			}
			if _, err := verifying.Sign(base); (err == nil) != verifying.Shared() {
				t.Errorf("a public key signs: %v", err)
			}
			for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", signing, signing, signing, signing), fmt.Sprint([]httpsig.Key{signing})} {
				if strings.Contains(text, "fake") || strings.Contains(text, "PRIVATE") || len(text) > 250 {
					t.Errorf("it prints %s", text)
				}
			}
		})
	}
}

// TestSelfMadeVectors has signatures over the request of RFC 9421, appendix B.2, with algorithms of which that has none.
// They were made once with OpenSSL 3.0.19 (openssl genpkey, openssl dgst -sign; of ECDSA the two numbers of its DER were put
// beside each other), over the text that section 2.5 makes of the request, written by hand.
func TestSelfMadeVectors(t *testing.T) {
	for _, c := range selfMade {
		key, err := httpsig.VerifyingKey("", c.public)
		if err != nil {
			t.Fatal(err)
		}
		key.Algorithm = c.algorithm
		found, err := httpsig.Parse([]string{c.input}, []string{c.signature})
		if err != nil {
			t.Fatal(err)
		}
		base, err := found[0].Base(&httpsig.Request{Method: "POST", URL: "https://example.com/foo?param=Value&Pet=dog", Header: map[string][]string{"Content-Type": {"application/json"}}})
		if err != nil || !key.Verify(base, found[0].Value) {
			t.Errorf("%s does not verify: %v\n%s", c.algorithm, err, base)
		}
		for i := range base {
			base[i] ^= 1
			if key.Verify(base, found[0].Value) {
				t.Errorf("%s verifies with another byte %d", c.algorithm, i)
			}
			base[i] ^= 1
		}
	}
}

// TestSaltOfAnyLength: libraries in Node sign with the longest salt, which RFC 9421 does not have.
func TestSaltOfAnyLength(t *testing.T) {
	private, err := httpsig.PrivateKey(httpsigtest.Of(httpsig.RSAPSSSHA512).Private)
	if err != nil {
		t.Fatal(err)
	}
	base := []byte(`"@method": POST`)
	sum := sha512.Sum512(base)
	for _, salt := range []int{rsa.PSSSaltLengthAuto, rsa.PSSSaltLengthEqualsHash, 32} {
		signature, err := private.Sign(rand.Reader, sum[:], &rsa.PSSOptions{SaltLength: salt, Hash: crypto.SHA512})
		if err != nil || !httpsig.RSAPSSSHA512.Verify(private.Public(), base, signature) {
			t.Errorf("with a salt of %d: %v", salt, err)
		}
	}
}

func TestKeysThatAreNone(t *testing.T) {
	ed := httpsigtest.Of(httpsig.Ed25519)
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	oddDER, _ := x509.MarshalPKCS8PrivateKey(odd)
	for name, c := range map[string]struct {
		read       func(id, text string) (httpsig.Key, error)
		text, want string
	}{
		"nothing":              {httpsig.SigningKey, "", "is empty"},
		"of Standard Webhooks": {httpsig.SigningKey, "whsec_ZmFrZQ==", "taken byte for byte here"},
		"the public key":       {httpsig.SigningKey, ed.Public, "is a public key, with which nothing can be signed"},
		"a certificate":        {httpsig.SigningKey, block("CERTIFICATE", []byte("x")), "is a certificate"},
		"encrypted":            {httpsig.SigningKey, block("ENCRYPTED PRIVATE KEY", []byte("x")), "openssl pkey -in key.pem -out plain.pem"},
		"encrypted before": {httpsig.SigningKey, "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
			"is encrypted"},
		"cut off":         {httpsig.SigningKey, ed.Private[:60], "copy it whole"},
		"on one line":     {httpsig.SigningKey, strings.ReplaceAll(ed.Private, "\n", " "), "with its line breaks"},
		"something else":  {httpsig.SigningKey, block("CERTIFICATE REQUEST", nil), "no private key"},
		"broken inside":   {httpsig.SigningKey, block("PRIVATE KEY", []byte("x")), "no private key that can be read"},
		"RSA of 1024":     {httpsig.SigningKey, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(small)), "no algorithm is for"},
		"P-521":           {httpsig.SigningKey, block("PRIVATE KEY", oddDER), "no algorithm is for"},
		"a private key":   {httpsig.VerifyingKey, ed.Private, "belongs to the sender alone"},
		"no key at all":   {httpsig.VerifyingKey, block("CERTIFICATE", []byte("x")), "no public key"},
		"cut off, public": {httpsig.VerifyingKey, ed.Public[:50], "copy it whole"},
	} {
		_, err := c.read("k1", c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(c.text) > 20 && strings.Contains(err.Error(), c.text[len(c.text)/2:]) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
}

// TestPrivateKeysInOtherForms: openssl and older programs write the same keys differently.
func TestPrivateKeysInOtherForms(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, _ := x509.MarshalECPrivateKey(ec)
	parameters, _ := base64.StdEncoding.DecodeString("BggqhkjOPQMBBw==")
	text := string(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: parameters})) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}))
	if key, err := httpsig.SigningKey("k1", text); err != nil || key.Algorithm != httpsig.ECDSAP256SHA256 {
		t.Errorf("%v, %v", key, err)
	}
}
