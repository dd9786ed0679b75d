package spec

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// publicDER is the public half of a key in DER.
func publicDER(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func inPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func newEd25519(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// privateKeys returns a key of each kind.
func privateKeys(t testing.TB) (ed25519.PrivateKey, *ecdsa.PrivateKey, *rsa.PrivateKey) {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return newEd25519(t), ec, long
}

// sealed signs a text with a private key: for ECDSA and RSA its hash.
func sealed(t testing.TB, key crypto.Signer, hash crypto.Hash, text string) []byte {
	t.Helper()
	message := []byte(text)
	if hash != 0 {
		message = digestWith(hash, message)
	}
	sig, err := key.Sign(rand.Reader, message, hash)
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// TestPublicKeys: every kind, with every form of key that it has and every encoding.
func TestPublicKeys(t *testing.T) {
	ed, ec, rs := privateKeys(t)
	raw := []byte(ed.Public().(ed25519.PublicKey))
	for _, c := range []struct {
		kind   Kind
		hash   Hash
		over   crypto.Hash
		key    KeyForm
		secret string
		signer crypto.Signer
	}{
		{Ed25519, "", 0, "", hex.EncodeToString(raw), ed},
		{Ed25519, "", 0, KeyBase64, base64.StdEncoding.EncodeToString(raw), ed},
		{Ed25519, "", 0, KeyWhpk, "whpk_" + base64.StdEncoding.EncodeToString(raw), ed},
		{Ed25519, "", 0, KeyPEM, inPEM(publicDER(t, ed)), ed},
		{ECDSA, "", crypto.SHA256, "", inPEM(publicDER(t, ec)), ec},
		{ECDSA, SHA512, crypto.SHA512, KeyBase64, base64.StdEncoding.EncodeToString(publicDER(t, ec)), ec},
		{RSA, "", crypto.SHA256, "", inPEM(publicDER(t, rs)), rs},
		{RSA, SHA1, crypto.SHA1, "", inPEM(publicDER(t, rs)), rs},
		{RSA, SHA512, crypto.SHA512, KeyHex, hex.EncodeToString(publicDER(t, rs)), rs},
	} {
		for _, e := range []Encoding{"", Hex, Base64, Base64URL} {
			s := signing(":", "id", "body")
			v := &s.Verify[0]
			v.Kind, v.Hash, v.Key, v.Encoding = c.kind, c.hash, c.key, e
			p := build1(t, s, Settings{Secrets: Secrets(c.secret)})
			sig := encoded(t, p.spec.Verify[0].Encoding, hex.EncodeToString(sealed(t, c.signer, c.over, "msg_1:{}")))
			req := signedAs(sig, "{}")
			req.Header.Set("X-Id", "msg_1")
			d, err := p.Open(req)
			if err != nil || d.Proof.Covers != "body" {
				t.Errorf("%s with a key in %s in %s: %+v, %v", c.kind, c.key, e, d, err)
			}
			req.Body = []byte("[]")
			rejected(t, p, req, hookonce.ReasonSignatureMismatch)
			req.Body = []byte("{}")
			req.Header.Set("X-Id", "msg_2")
			rejected(t, p, req, hookonce.ReasonSignatureMismatch)
			if err := p.Sign(req); err == nil || !strings.Contains(err.Error(), "private key") {
				t.Errorf("%s: %v", c.kind, err)
			}
		}
	}
}

// TestPublicKeyRotation: any of several keys may have signed, and any of several signatures may be theirs.
func TestPublicKeyRotation(t *testing.T) {
	first, second, stranger := newEd25519(t), newEd25519(t), newEd25519(t)
	secrets := Secrets(hex.EncodeToString(first.Public().(ed25519.PublicKey)), hex.EncodeToString(second.Public().(ed25519.PublicKey)))
	s := carried(Signature{Split: " "})
	s.Verify[0].Kind = Ed25519
	p := build1(t, s, Settings{Secrets: secrets})
	sign := func(key ed25519.PrivateKey) string { return hex.EncodeToString(sealed(t, key, 0, "{}")) }
	for line, number := range map[string]int{sign(first): 1, sign(second): 2, sign(stranger) + " " + sign(second): 2, sign(stranger): 0} {
		d, err := p.Open(signedAs(line, "{}"))
		if number == 0 && err == nil || number > 0 && (err != nil || d.Proof.Secret != number) {
			t.Errorf("secret %d: %+v, %v", number, d, err)
		}
	}
}

// TestKeysOfAnotherKind are refused when the program starts, and so are short ones and private ones.
func TestKeysOfAnotherKind(t *testing.T) {
	ed, ec, rs := privateKeys(t)
	long, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// Nothing generates a key that is too short any more: this one is a number without known factors.
	short, err := asn1.Marshal(struct {
		N *big.Int
		E int
	}{new(big.Int).SetBit(big.NewInt(1), 1023, 1), 65537})
	if err != nil {
		t.Fatal(err)
	}
	spki, err := asn1.Marshal(struct {
		Algorithm struct {
			ID   asn1.ObjectIdentifier
			Null asn1.RawValue
		}
		Key asn1.BitString
	}{struct {
		ID   asn1.ObjectIdentifier
		Null asn1.RawValue
	}{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, asn1.NullRawValue}, asn1.BitString{Bytes: short, BitLength: len(short) * 8}})
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind Kind
		key  KeyForm
		text string
		want string
	}{
		{Ed25519, KeyPEM, inPEM(publicDER(t, ec)), "another kind than ed25519"}, {ECDSA, "", inPEM(publicDER(t, rs)), "another kind than ecdsa"},
		{RSA, "", inPEM(publicDER(t, ed)), "another kind than rsa"}, {ECDSA, "", inPEM(publicDER(t, long)), "another kind than ecdsa"},
		{RSA, "", inPEM(spki), "2048 bits"}, {ECDSA, "", inPEM(private), "private key"}, {Ed25519, "", "00ff", "is not a public key"},
		{ECDSA, "", "hidden", "is not PEM"}, {Ed25519, "", "hidden", "is not hexadecimal"},
	} {
		s := plain()
		s.Verify[0].Kind, s.Verify[0].Key = c.kind, c.key
		if _, err := New(s, Settings{Secrets: Secrets(c.text)}); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: got %v, want %q", c.kind, err, c.want)
		}
	}
}

// TestMutatedPublicKeySignatures changes every byte of a signature, and what it is encoded in.
func TestMutatedPublicKeySignatures(t *testing.T) {
	ed, ec, rs := privateKeys(t)
	for _, c := range []struct {
		kind   Kind
		secret string
		sig    []byte
	}{
		{Ed25519, inPEM(publicDER(t, ed)), sealed(t, ed, 0, "{}")},
		{ECDSA, inPEM(publicDER(t, ec)), sealed(t, ec, crypto.SHA256, "{}")},
		{RSA, inPEM(publicDER(t, rs)), sealed(t, rs, crypto.SHA256, "{}")},
	} {
		for _, e := range []Encoding{Hex, Base64} {
			s := plain()
			s.Verify[0].Kind, s.Verify[0].Key, s.Verify[0].Encoding = c.kind, KeyPEM, e
			p := build1(t, s, Settings{Secrets: Secrets(c.secret)})
			text := encoded(t, e, hex.EncodeToString(c.sig))
			if _, err := p.Open(signedAs(text, "{}")); err != nil {
				t.Errorf("%s: %v", c.kind, err)
			}
			sum := sha256.Sum256([]byte("{}"))
			forged := []string{"", "=", "AAAA", text + "\n" + text, encoded(t, e, hex.EncodeToString(sum[:])), encoded(t, e, strings.Repeat("00", len(c.sig)))}
			for i := range text {
				forged = append(forged, text[:i]+string(rune(text[i]^1))+text[i+1:], text[:i]+string(rune(text[i]^0x20))+text[i+1:])
			}
			for _, sig := range forged {
				if d, err := p.Open(signedAs(sig, "{}")); err == nil {
					t.Errorf("%s: %q: %v", c.kind, sig, d)
				}
			}
		}
	}
}
