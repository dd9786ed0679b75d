package oracle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"

	"github.com/sendgrid/sendgrid-go/helpers/eventwebhook"

	"github.com/hookonce/hookonce"
)

func sendgridSDK() sdk {
	private, public := ecdsaKey(1)
	_, stranger := ecdsaKey(2)
	key, _ := eventwebhook.ConvertPublicKeyBase64ToECDSA(public)
	return sdk{
		module:   "github.com/sendgrid/sendgrid-go",
		provider: "sendgrid",
		secret:   public,
		other:    stranger,
		private:  true,
		wrap:     inJSON,
		accepts: func(req *hookonce.Request) bool {
			ok, err := eventwebhook.VerifySignature(key, req.Body,
				req.Header.Get(eventwebhook.VerificationHTTPHeader), req.Header.Get(eventwebhook.TimestampHTTPHeader))
			return ok && err == nil
		},
		sign: func(req *hookonce.Request) error {
			sum := sha256.Sum256(append([]byte(unix(req.Now)), req.Body...))
			signature, err := private.Sign(nil, sum[:], crypto.SHA256) // the same in every run
			req.Header.Set(eventwebhook.TimestampHTTPHeader, unix(req.Now))
			req.Header.Set(eventwebhook.VerificationHTTPHeader, base64.StdEncoding.EncodeToString(signature))
			return err
		},
	}
}

// ecdsaKey returns a key, the same in every run, and its public half as SendGrid shows it.
func ecdsaKey(seed byte) (*ecdsa.PrivateKey, string) {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		panic(err) // every seed is a key
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		panic(err) // P-256 can be written
	}
	return key, base64.StdEncoding.EncodeToString(der)
}
