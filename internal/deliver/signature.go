package deliver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks (https://www.standardwebhooks.com), spelled as net/http does.
const (
	messageIDHeader = "Webhook-Id"
	timestampHeader = "Webhook-Timestamp"
	signatureHeader = "Webhook-Signature"
)

// secretPrefix begins a secret whose bytes are written in base64.
const secretPrefix = "whsec_"

// keys reads the secrets. Errors do not repeat them.
func (d *destination) keys(secrets []string) error {
	for _, s := range secrets {
		key := []byte(s)
		if encoded, ok := strings.CutPrefix(s, secretPrefix); ok {
			var err error
			if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				return errors.New("a secret is not base64 after whsec_: copy it whole, with = at its end")
			}
		}
		if len(key) == 0 {
			return errors.New("a secret is empty: remove it or write one of 24 random bytes or more")
		}
		d.secrets = append(d.secrets, key)
	}
	return nil
}

// messageID names a message: an event on its way to one destination. It is the same for every attempt,
// in every process, because it is made of the Idempotency-Key.
func messageID(idempotencyKey, destination string) string {
	sum := sha256.Sum256([]byte(idempotencyKey + " " + destination)) // a key has no space
	return "msg_" + hex.EncodeToString(sum[:16])
}

// signatures returns one signature per secret, each over the identifier, the time and the body.
func signatures(secrets [][]byte, id string, at time.Time, body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	var b strings.Builder
	for i, secret := range secrets {
		if i > 0 {
			b.WriteByte(' ')
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		b.WriteString("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return timestamp, b.String()
}
