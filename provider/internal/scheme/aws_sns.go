package scheme

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/remotekeys"
	"github.com/hookonce/hookonce/provider/spec"
)

// The members that are signed, by the type of the message, in the order in which they are.
var (
	snsNotification = []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	snsConfirmation = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
)

// snsScheme is RSA over some members of the body, which names the certificate.
type snsScheme struct{ certificates *remotekeys.Certificates }

// AmazonSNS returns the scheme of Amazon SNS, with an empty cache of certificates.
func AmazonSNS(transport http.RoundTripper) spec.Scheme {
	// Amazon serves the certificate without those between it and a root. That it comes over TLS from
	// SNS's own host is what it is trusted for. So the middle label must be a region, such as us-gov-west-1: with any text there
	// the bucket named sns, which is somebody's, would have a place, as sns.s3-us-west-2.amazonaws.com.
	trust := func([]*x509.Certificate, time.Time) error { return nil }
	return &snsScheme{remotekeys.NewCertificates(remotekeys.NewClient(transport), `sns\.[a-z]+(-[a-z]+)+-[0-9]+\.amazonaws\.com(\.cn)?/[A-Za-z0-9._-]+\.pem`, trust)}
}

func (*snsScheme) MarshalText() ([]byte, error) { return []byte("aws-sns"), nil }
func (*snsScheme) Covers() spec.Coverage        { return spec.CoversFields }

func (*snsScheme) Signs(v spec.Value) bool {
	name, ok := strings.CutPrefix(string(v), "json:$.")
	return ok && (slices.Contains(snsNotification, name) || slices.Contains(snsConfirmation, name)) || strings.HasPrefix(string(v), "const:")
}

func (s *snsScheme) Compile(topicARN string) (spec.Checker, error) {
	if !strings.HasPrefix(topicARN, "arn:") || strings.ContainsAny(topicARN, " \t\r\n") {
		return nil, errors.New("is not the ARN of a topic, as in arn:aws:sns:eu-central-1:123456789012:orders")
	}
	return &snsChecker{s, topicARN}, nil
}

type snsChecker struct {
	*snsScheme
	topic string
}

func (c *snsChecker) Check(req *hookonce.Request) error {
	m, err := snsMembers(req.Body)
	if err != nil {
		return err
	}
	message, err := snsMessage(m)
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(m["Signature"])
	hash, known := map[string]crypto.Hash{"1": crypto.SHA1, "2": crypto.SHA256}[m["SignatureVersion"]]
	switch {
	case m["Signature"] == "" || m["SigningCertURL"] == "":
		return incoming.Reject(hookonce.ReasonSignatureMissing, "the members Signature and SigningCertURL are absent; raw message delivery is not signed")
	case err != nil:
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the member Signature is not base64")
	case !known:
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the member SignatureVersion is neither \"1\" nor \"2\"")
	case m["TopicArn"] != c.topic:
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the message is from another topic than the one that is configured")
	}
	key, err := c.certificates.Key(m["SigningCertURL"], req)
	if err != nil {
		return err
	}
	h := hash.New()
	h.Write([]byte(message))
	if rsa.VerifyPKCS1v15(key, hash, h.Sum(nil), signature) != nil {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the member Signature was not made over the signed members with Amazon's key")
	}
	return nil
}

// snsRead are the members that are read: those that are signed, and what verifies them.
var snsRead = slices.Concat(snsNotification, snsConfirmation, []string{"Signature", "SignatureVersion", "SigningCertURL"})

// snsMembers returns the members of the message that are read. One that is no text, is there twice, or
// is there in another spelling as well is refused: parsers disagree about which one counts, and one of
// them only is signed.
func snsMembers(body []byte) (members map[string]string, err error) {
	doc := gjson.ParseBytes(body)
	if !json.Valid(body) || !doc.IsObject() { // gjson's own check is recursive
		return nil, incoming.Reject(hookonce.ReasonSignatureMissing, "the body is not a JSON object; raw message delivery is not signed")
	}
	members = map[string]string{}
	doc.ForEach(func(name, text gjson.Result) bool {
		i := slices.IndexFunc(snsRead, func(known string) bool { return strings.EqualFold(known, name.Str) })
		if i < 0 {
			return true
		}
		if _, twice := members[name.Str]; twice || snsRead[i] != name.Str || text.Type != gjson.String {
			err = incoming.Reject(hookonce.ReasonSignatureMalformed, "the member %s is no text, or is there in another spelling or twice", snsRead[i])
			return false
		}
		members[name.Str] = text.Str
		return true
	})
	return members, err
}

// snsMessage returns what is signed: names and values, each on a line. A member that is signed in
// messages of another type only is refused: nothing would bind it here.
func snsMessage(members map[string]string) (string, error) {
	names, others := snsNotification, snsConfirmation
	switch members["Type"] {
	case "Notification":
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		names, others = others, names
	default:
		return "", incoming.Reject(hookonce.ReasonSignatureMissing, "the member Type is not that of a message of SNS")
	}
	for _, name := range others {
		if _, ok := members[name]; ok && !slices.Contains(names, name) {
			return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "a message of this type has no member %s, and it would not be signed", name)
		}
	}
	var b strings.Builder
	for _, name := range names {
		text, ok := members[name]
		switch {
		case ok:
			b.WriteString(name + "\n" + text + "\n")
		case name != "Subject":
			return "", incoming.Reject(hookonce.ReasonSignatureMissing, "the member %s, which the signature covers, is absent", name)
		}
	}
	return b.String(), nil
}
