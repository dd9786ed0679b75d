package scheme

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// TestAppleRoot: the certificate that is built in is the one that Apple publishes, whose fingerprint is widely known.
func TestAppleRoot(t *testing.T) {
	block, rest := pem.Decode(AppleRoot)
	if block == nil || len(rest) > 0 {
		t.Fatal("it is not one certificate in PEM")
	}
	sum := sha256.Sum256(block.Bytes)
	if got := hex.EncodeToString(sum[:]); got != "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179" {
		t.Errorf("its fingerprint is %s", got)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || cert.CheckSignatureFrom(cert) != nil || cert.Subject.CommonName != "Apple Root CA - G3" || cert.NotAfter.Year() != 2039 {
		t.Errorf("%v, %v", cert.Subject, err)
	}
}

// apple is a chain of certificates as Apple has it, some of it changed.
type apple struct {
	chain [3]*x509.Certificate // leaf, issuer, root
	key   *ecdsa.PrivateKey
}

func newApple(t *testing.T, change func(n int, c *x509.Certificate)) *apple {
	t.Helper()
	a := &apple{}
	var parentKey *ecdsa.PrivateKey
	for n := 2; n >= 0; n-- {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(n + 1)), Subject: pkix.Name{CommonName: fmt.Sprint("Fake ", n)},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), BasicConstraintsValid: true, IsCA: n > 0, KeyUsage: x509.KeyUsageDigitalSignature,
		}
		if n > 0 {
			c.KeyUsage = x509.KeyUsageCertSign
		}
		if n < 2 {
			c.ExtraExtensions = []pkix.Extension{{Id: []asn1.ObjectIdentifier{appleSigns, appleIssues}[n], Value: []byte{5, 0}}}
		}
		change(n, c)
		parent := a.chain[min(n+1, 2)]
		if n == 2 {
			parent, parentKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
		if err != nil {
			t.Fatal(err)
		}
		if a.chain[n], err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		a.key, parentKey = key, key
	}
	return a
}

func (a *apple) root() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.chain[2].Raw})
}

// body returns a notification with that payload.
func (a *apple) body(t *testing.T, payload string) string {
	t.Helper()
	var x5c []string
	for _, c := range a.chain {
		x5c = append(x5c, base64.StdEncoding.EncodeToString(c.Raw))
	}
	header, err := json.Marshal(map[string]any{"alg": "ES256", "x5c": x5c})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode(header) + "." + encode([]byte(payload))
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, a.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return `{"signedPayload":"` + signed + "." + encode(sig) + `"}`
}

func unchanged(int, *x509.Certificate) {}

// about is the payload of a notification that was signed at that time.
func about(at time.Time) string {
	return fmt.Sprintf(`{"notificationType":"TEST","notificationUUID":"n-1","signedDate":%d,"data":{"bundleId":"com.example.shop","environment":"Production"}}`, at.UnixMilli())
}

// verdict returns why the notification is refused under that root, empty if it is not.
func verdict(t *testing.T, root []byte, body string) string {
	t.Helper()
	c, err := AppStore(root).Compile("production:com.example.shop")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Check(&hookonce.Request{Body: []byte(body), Now: now})
	var rejected *hookonce.RejectError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &rejected):
		t.Fatal(err)
	}
	return rejected.Detail
}

// TestAppStoreChains: a chain that leads to the root is not enough, nor one that does not.
func TestAppStoreChains(t *testing.T) {
	genuine := newApple(t, unchanged)
	if why := verdict(t, genuine.root(), genuine.body(t, about(now))); why != "" {
		t.Fatal(why)
	}
	unmarked := func(which int) func(int, *x509.Certificate) {
		return func(n int, c *x509.Certificate) {
			if n == which {
				c.ExtraExtensions = nil
			}
		}
	}
	for name, c := range map[string]struct {
		chain *apple
		want  string
	}{
		"another root":            {newApple(t, unchanged), "was not issued by Apple's root"},
		"a leaf for something":    {newApple(t, unmarked(0)), "are for something else"},
		"an issuer for something": {newApple(t, unmarked(1)), "are for something else"},
		"an issuer that is none":  {newApple(t, func(n int, c *x509.Certificate) { c.IsCA = c.IsCA && n != 1 }), "was not issued by the owner of the second"},
		"a leaf that has run out": {newApple(t, func(n int, c *x509.Certificate) {
			c.NotAfter = now.Add([]time.Duration{-2 * time.Minute, time.Hour, time.Hour}[n])
		}), "was not valid when"},
		"a leaf that is not valid": {newApple(t, func(n int, c *x509.Certificate) {
			c.NotBefore = now.Add([]time.Duration{2 * time.Minute, -time.Hour, -time.Hour}[n])
		}), "was not valid when"},
	} {
		root := c.chain.root()
		if name == "another root" {
			root = genuine.root()
		}
		if why := verdict(t, root, c.chain.body(t, about(now))); !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
	crossed := newApple(t, unchanged) // a genuine issuer, and a leaf of somebody else
	crossed.chain[1], crossed.chain[2] = genuine.chain[1], genuine.chain[2]
	if why := verdict(t, genuine.root(), crossed.body(t, about(now))); !strings.Contains(why, "was not issued by the owner of the second") {
		t.Error(why)
	}
	stolen := newApple(t, unchanged) // genuine certificates, and another key
	stolen.chain = genuine.chain
	if why := verdict(t, genuine.root(), stolen.body(t, about(now))); !strings.Contains(why, "with the key of its certificate") {
		t.Error(why)
	}
}

// TestAppStoreTimes: an old notification may come late, and none comes before it was signed.
func TestAppStoreTimes(t *testing.T) {
	a := newApple(t, func(_ int, c *x509.Certificate) {
		c.NotBefore, c.NotAfter = now.Add(-30*24*time.Hour), now.Add(time.Hour)
	})
	for at, want := range map[time.Time]string{
		now.Add(-157 * time.Hour): "", now.Add(appleSkew): "", now.Add(appleSkew + time.Second): "in the future", now.Add(-31 * 24 * time.Hour): "was not valid when",
	} {
		if why := verdict(t, a.root(), a.body(t, about(at))); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("signed at %v: %q, want %q", at, why, want)
		}
	}
	other := strings.Replace(about(now.Add(time.Minute+appleSkew)), "com.example.shop", "com.example.other", 1)
	if why := verdict(t, a.root(), a.body(t, other)); !strings.Contains(why, "about another app") {
		t.Errorf("of the future, and about another app: %q", why)
	}
}

// TestOneSignedPayload: whoever reads the body otherwise must not find another notification in it.
func TestOneSignedPayload(t *testing.T) {
	a := newApple(t, unchanged)
	body, other := a.body(t, about(now)), a.body(t, strings.Replace(about(now), "n-1", "n-2", 1))
	inner := strings.TrimSuffix(strings.TrimPrefix(other, "{"), "}")
	for _, bad := range []string{
		strings.Replace(body, "{", "{"+inner+",", 1), strings.TrimSuffix(body, "}") + "," + inner + "}",
		strings.Replace(body, "signedPayload", "SignedPayload", 1), `[` + body + `]`, body + body, body + "x", `{"signedPayload":1}`, `{"signedPayload":{}}`, `{}`, ``, `"x"`,
		strings.TrimSuffix(body, "}") + `,"SIGNEDPAYLOAD":"x"}`,
	} {
		if why := verdict(t, a.root(), bad); why == "" {
			t.Errorf("accepted: %.60s", bad)
		}
	}
	if why := verdict(t, a.root(), " "+body+"\n"); why != "" {
		t.Error(why)
	}
}

// TestAppStoreNotifications: what says nothing of an app, or is none, is refused.
func TestAppStoreNotifications(t *testing.T) {
	a := newApple(t, unchanged)
	for _, payload := range []string{
		`{}`, `[]`, `{"notificationUUID":"n-1"}`, strings.Replace(about(now), "n-1", "", 1), strings.Replace(about(now), "data", "other", 1),
		strings.Replace(about(now), "com.example.shop", "com.example.shop.other", 1), strings.Replace(about(now), "Production", "production", 1),
		// Nothing vouches for the second where the first is about another app.
		strings.Replace(about(now), `"data":{"bundleId":"com.example.shop"`, `"appData":{"bundleId":"com.example.shop","environment":"Production"},"data":{"bundleId":"com.example.other"`, 1),
	} {
		if why := verdict(t, a.root(), a.body(t, payload)); why == "" {
			t.Errorf("accepted: %s", payload)
		}
	}
}
