package scheme

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	birdHeader = "MessageBird-Signature"
	birdTime   = "MessageBird-Request-Timestamp"
)

// birdScheme is an HMAC over the time, the URL and the digest of the body, each on a line of its own. The digest is in
// raw bytes, which is why data cannot express it.
type birdScheme struct{}

// Bird returns the scheme of Bird's notifications.
func Bird() spec.Scheme { return birdScheme{} }

func (birdScheme) MarshalText() ([]byte, error) { return []byte("bird"), nil }
func (birdScheme) Covers() spec.Coverage        { return spec.CoversBody }
func (birdScheme) Imitable() bool               { return true }
func (birdScheme) Carrier() spec.Value          { return "header:" + birdHeader }

// Signs is true for the body, the URL and the time.
func (birdScheme) Signs(v spec.Value) bool {
	return signsDocument(v) || v == "url" || v == "header:"+birdTime
}

func (birdScheme) Compile(secret string) (spec.Checker, error) {
	if err := wholeSecret(secret); err != nil {
		return nil, err
	}
	return birdChecker(secret), nil
}

type birdChecker []byte

func (key birdChecker) Check(req *hookonce.Request) error {
	signature, err := incoming.Required(req.Header, birdHeader, "44 characters of base64")
	if err != nil {
		return err
	}
	at, err := incoming.Required(req.Header, birdTime, "unix seconds")
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(at, 10, 63); err != nil { // what is signed has lines, and a time has none
		return incoming.Reject(hookonce.ReasonTimestampMissing, "the header %s is not unix seconds", birdTime)
	}
	if !hmac.Equal([]byte(signature), key.sign(at, req)) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch,
			"the signature in %s was not made over the time, the URL and the body with the secret; check the signing key, and that the URL is exactly the one registered with Bird", birdHeader)
	}
	return nil
}

func (key birdChecker) sign(at string, req *hookonce.Request) []byte {
	digest := sha256.Sum256(req.Body)
	h := hmac.New(sha256.New, key)
	h.Write([]byte(at + "\n" + req.URL + "\n"))
	h.Write(digest[:])
	return base64.StdEncoding.AppendEncode(nil, h.Sum(nil))
}

// Seal signs at the time of the request.
func (key birdChecker) Seal(req *hookonce.Request) error {
	if req.URL == "" {
		return errors.New("the scheme signs the URL, and neither the request nor the settings have one")
	}
	at := strconv.FormatInt(req.Now.Unix(), 10)
	req.Header.Set(birdTime, at)
	req.Header.Set(birdHeader, string(key.sign(at, req)))
	return nil
}
