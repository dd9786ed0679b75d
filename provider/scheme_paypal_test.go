package provider

import (
	"crypto"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

const paypalBody = `{"id":"WH-1","event_type":"PAYMENT.CAPTURE.COMPLETED","create_time":"2026-02-03T04:05:06Z","resource":{"id":"CAP-1"}}`

// paypalWorld is a provider with a certificate of its own.
type paypalWorld struct {
	*net
	*spec.Provider
	key *rsa.PrivateKey
}

// newPayPalWorld serves a certificate for that name, issued by a trusted authority or another.
func newPayPalWorld(t *testing.T, name string, trusted bool) *paypalWorld {
	t.Helper()
	root, key := newAuthority(t), newRSA(t)
	cert := root.issue(t, name, &key.PublicKey, now.Add(day))
	n := &net{serve: func(*http.Request) (int, string) { return http.StatusOK, inPEM(cert) }}
	roots := root.pool()
	if !trusted {
		roots = newAuthority(t).pool()
	}
	return &paypalWorld{n, withScheme(t, "paypal", scheme.PayPal(n, roots), "WEBHOOK-1"), key}
}

// request returns a transmission of that id, as PayPal would sign it.
func (w *paypalWorld) request(t *testing.T, id, body string) *hookonce.Request {
	t.Helper()
	const sent = "2026-02-03T04:05:06Z"
	req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now}
	req.Header.Set("PAYPAL-TRANSMISSION-ID", id)
	req.Header.Set("PAYPAL-TRANSMISSION-TIME", sent)
	req.Header.Set("PAYPAL-TRANSMISSION-SIG", rsaSigned(t, w.key, crypto.SHA256, paypalMessage(id, sent, "WEBHOOK-1", req.Body)))
	req.Header.Set("PAYPAL-CERT-URL", "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1")
	req.Header.Set("PAYPAL-AUTH-ALGO", "SHA256withRSA")
	return req
}

// paypalMessage is what PayPal signs.
func paypalMessage(id, sent, webhookID string, body []byte) string {
	return fmt.Sprintf("%s|%s|%s|%d", id, sent, webhookID, crc32.ChecksumIEEE(body))
}

// The signed string of the vector of PayPal's SDK.
func TestPayPalMessage(t *testing.T) {
	for _, v := range published(t) {
		if v.Provider != "paypal" {
			continue
		}
		const want = "dfb3be50-fd74-11e4-8bf3-77339302725b|2015-05-18T15:45:13Z|4JH86294D6297924G|2771810304"
		got := paypalMessage(v.Headers["PAYPAL-TRANSMISSION-ID"], v.Headers["PAYPAL-TRANSMISSION-TIME"], strings.TrimPrefix(v.Secret, "webhook_id="), v.Body)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		return
	}
	t.Error("the vector is gone")
}

// The transmission's id as the key would let every retry through.
func TestPayPalResendIsOneEvent(t *testing.T) {
	w := newPayPalWorld(t, "messageverificationcerts.paypal.com", true)
	first := one(t, w.Provider, w.request(t, "T-1", paypalBody))
	again := one(t, w.Provider, w.request(t, "T-2", paypalBody))
	if first.Key != "WH-1" || again.Key != first.Key || again.AttemptID == first.AttemptID {
		t.Errorf("keys %q and %q, deliveries %q and %q", first.Key, again.Key, first.AttemptID, again.AttemptID)
	}
	if first.KeySigned {
		t.Error("a checksum does not sign the key")
	}
	if n := w.asked.Load(); n != 1 {
		t.Errorf("the certificate was fetched %d times", n)
	}
}

// A body with the same checksum is made in no time: a transmission belongs to one body.
func TestPayPalTransmissionBelongsToOneBody(t *testing.T) {
	w := newPayPalWorld(t, "messageverificationcerts.paypal.com", true)
	genuine := w.request(t, "T-1", paypalBody)
	one(t, w.Provider, genuine)

	forged := *genuine
	forged.Body = sameChecksum(`{"id":"WH-2","event_type":"PAYMENT.CAPTURE.COMPLETED"}`, genuine.Body)
	if crc32.ChecksumIEEE(forged.Body) != crc32.ChecksumIEEE(genuine.Body) {
		t.Fatal("the test's forgery is none")
	}
	if why := reason(t, w.Provider, &forged); why.Reason != hookonce.ReasonSignatureMismatch {
		t.Error(why)
	}
	one(t, w.Provider, genuine) // the same transmission with its own body still passes
}

// sameChecksum appends four bytes to text so that its CRC-32 is that of the other body.
func sameChecksum(text string, other []byte) []byte {
	var back [256]byte
	for i, v := range crc32.IEEETable {
		back[v>>24] = byte(i)
	}
	want := ^crc32.ChecksumIEEE(other)
	for range 4 {
		i := back[want>>24]
		want = (want^crc32.IEEETable[i])<<8 | uint32(i)
	}
	return binary.LittleEndian.AppendUint32([]byte(text), want^^crc32.ChecksumIEEE([]byte(text)))
}

func TestPayPalRejects(t *testing.T) {
	w := newPayPalWorld(t, "messageverificationcerts.paypal.com", true)
	change := func(name, text string) func(*hookonce.Request) {
		return func(req *hookonce.Request) { req.Header.Set(name, text) }
	}
	cases := map[string]struct {
		change func(*hookonce.Request)
		reason string
	}{
		"another body":         {func(req *hookonce.Request) { req.Body[1] ^= 1 }, hookonce.ReasonSignatureMismatch},
		"another transmission": {change("PAYPAL-TRANSMISSION-ID", "T-9"), hookonce.ReasonSignatureMismatch},
		"another time":         {change("PAYPAL-TRANSMISSION-TIME", "2026-02-03T04:05:07Z"), hookonce.ReasonSignatureMismatch},
		"another algorithm":    {change("PAYPAL-AUTH-ALGO", "SHA1withRSA"), hookonce.ReasonSignatureMalformed},
		"no base64":            {change("PAYPAL-TRANSMISSION-SIG", "!"), hookonce.ReasonSignatureMalformed},
		"no signature":         {change("PAYPAL-TRANSMISSION-SIG", ""), hookonce.ReasonSignatureMissing},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := w.request(t, "T-1", paypalBody)
			c.change(req)
			if why := reason(t, w.Provider, req); why.Reason != c.reason {
				t.Error(why)
			}
		})
	}
	other := withScheme(t, "paypal", scheme.PayPal(w, nil), "WEBHOOK-2")
	if _, err := other.Open(w.request(t, "T-1", paypalBody)); err == nil {
		t.Error("accepted under another webhook's id, without a trusted root")
	}
}

// Whoever sends a request names the certificate. Nobody is asked for it but PayPal.
func TestPayPalCertificateIsPinned(t *testing.T) {
	w := newPayPalWorld(t, "messageverificationcerts.paypal.com", true)
	for _, address := range []string{
		"http://api.paypal.com/cert", "https://evilpaypal.com/cert", "https://api.paypal.com.evil.example/cert", "https://paypal.com/cert",
		"https://api.paypal.com@evil.example/cert", "https://evil.example/#.paypal.com/cert", "https://api.paypal.com:8443/cert",
		"https://api.paypal.com/cert?x=1", "https://evil.example\\.paypal.com/cert", "//api.paypal.com/cert", "file:///etc/passwd", "%",
	} {
		req := w.request(t, "T-1", paypalBody)
		req.Header.Set("PAYPAL-CERT-URL", address)
		if why := reason(t, w.Provider, req); why.Reason != hookonce.ReasonSignatureMalformed {
			t.Errorf("%s: %v", address, why)
		}
	}
	if n := w.asked.Load(); n != 0 {
		t.Errorf("%d requests went out", n)
	}
}

// What cannot be verified now is not rejected: PayPal would take that for final.
func TestPayPalUntrustedCertificateIsUndecided(t *testing.T) {
	worlds := map[string]*paypalWorld{
		"another name":      newPayPalWorld(t, "messageverificationcerts.paypal.com.evil.example", true),
		"another authority": newPayPalWorld(t, "messageverificationcerts.paypal.com", false),
		"no answer":         newPayPalWorld(t, "messageverificationcerts.paypal.com", true),
		"no certificate":    newPayPalWorld(t, "messageverificationcerts.paypal.com", true),
	}
	worlds["no answer"].serve = func(*http.Request) (int, string) { return http.StatusBadGateway, "" }
	worlds["no certificate"].serve = func(*http.Request) (int, string) { return http.StatusOK, "<html>" }
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			var rej *hookonce.RejectError
			d, err := w.Open(w.request(t, "T-1", paypalBody))
			if d != nil || err == nil || errors.As(err, &rej) {
				t.Errorf("got %v, %v", d, err)
			}
		})
	}
}
