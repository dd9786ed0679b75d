package scheme

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/spec"
)

// BraintreeChallenge is the pattern of what a challenge looks like. The code for a challenge is made like the
// signature of a payload, so a payload never looks so.
const BraintreeChallenge = `[0-9a-f]{20,32}`

// maxBraintreeSignatures is how many entries bt_signature may have: there is one for each key of the
// account.
const maxBraintreeSignatures = 256

// braintreeScheme is an HMAC over the field bt_payload, which holds XML in base64.
type braintreeScheme struct{}

// Braintree returns the scheme of Braintree.
func Braintree() spec.Scheme { return braintreeScheme{} }

func (braintreeScheme) MarshalText() ([]byte, error) { return []byte("braintree"), nil }
func (braintreeScheme) Covers() spec.Coverage        { return spec.CoversFields }
func (braintreeScheme) Imitable() bool               { return true }
func (braintreeScheme) Carrier() spec.Value          { return "form:bt_signature" }

// Signs is true for the payload and what is read from it.
func (braintreeScheme) Signs(v spec.Value) bool {
	text := strings.TrimPrefix(string(v), "hash:")
	return text == "form:bt_payload" || strings.HasPrefix(text, "json:") || strings.HasPrefix(text, "const:")
}

func (braintreeScheme) Compile(secret string) (spec.Checker, error) {
	parts, err := credentials(secret, "public_key", "private_key")
	if err != nil {
		return nil, err
	}
	key := sha1.Sum([]byte(parts[1]))
	return &braintreeChecker{parts[0], key[:]}, nil
}

type braintreeChecker struct {
	public string
	key    []byte
}

func (c *braintreeChecker) Check(req *hookonce.Request) error {
	form, ok := incoming.Form(req)
	if !ok || len(form["bt_signature"]) != 1 || len(form["bt_payload"]) != 1 {
		return incoming.Reject(hookonce.ReasonSignatureMissing, "the body is not a form with the fields bt_signature and bt_payload, each once")
	}
	signatures, payload := form.Get("bt_signature"), form.Get("bt_payload")
	if strings.Count(signatures, "&") >= maxBraintreeSignatures {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "bt_signature has more than %d entries", maxBraintreeSignatures)
	}
	ours, want := 0, c.sign(payload)
	for pair := range strings.SplitSeq(signatures, "&") {
		public, signature, _ := strings.Cut(pair, "|")
		if public != c.public {
			continue
		}
		ours++
		if hmac.Equal([]byte(signature), want) {
			return nil
		}
	}
	if ours == 0 {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "bt_signature has no entry for the public key; expected <public key>|<40 hexadecimal digits>, joined by &")
	}
	return incoming.Reject(hookonce.ReasonSignatureMismatch, "the signature in bt_signature was not made over bt_payload with the private key; check the keys, and that line breaks are kept")
}

func (c *braintreeChecker) sign(text string) []byte {
	return hex.AppendEncode(nil, hmacSHA1(c.key, text))
}

// Respond answers a challenge, which the pattern of the handshake has matched.
func (c *braintreeChecker) Respond(challenge string) string {
	return c.public + "|" + string(c.sign(challenge))
}

// Signed returns bt_payload.
func (*braintreeChecker) Signed(req *hookonce.Request) string {
	form, _ := incoming.Form(req)
	return form.Get("bt_payload")
}

// Seal signs bt_payload. A notification in plain XML is encoded first.
func (c *braintreeChecker) Seal(req *hookonce.Request) error {
	form, ok := incoming.Form(req)
	payload := form.Get("bt_payload")
	if !ok || payload == "" {
		return errors.New("the body is not a form with the field bt_payload")
	}
	if strings.HasPrefix(payload, "<") {
		payload = base64.StdEncoding.EncodeToString([]byte(payload)) + "\n"
	}
	signature := c.public + "|" + string(c.sign(payload))
	req.Body = []byte(url.Values{"bt_signature": {signature}, "bt_payload": {payload}}.Encode())
	return nil
}

// Decode returns kind, timestamp and the subject's id.
func (braintreeScheme) Decode(req *hookonce.Request) ([]byte, error) {
	form, _ := incoming.Form(req)
	text, err := base64.StdEncoding.DecodeString(form.Get("bt_payload")) // line breaks are ignored
	if err != nil {
		return nil, fmt.Errorf("bt_payload is not base64: %w", err)
	}
	var n struct {
		Kind      string `xml:"kind"`
		Timestamp string `xml:"timestamp"`
		Subject   struct {
			Any []struct {
				ID string `xml:"id"`
			} `xml:",any"`
		} `xml:"subject"`
	}
	if err := xml.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("bt_payload does not hold XML: %w", err)
	}
	facts := map[string]string{"kind": n.Kind, "timestamp": n.Timestamp}
	if len(n.Subject.Any) == 1 {
		facts["id"] = n.Subject.Any[0].ID
	}
	return json.Marshal(facts)
}
