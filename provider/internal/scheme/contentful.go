package scheme

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	contentfulHeader    = "X-Contentful-Signature"
	contentfulList      = "X-Contentful-Signed-Headers"
	contentfulTime      = "X-Contentful-Timestamp"
	contentfulTolerance = 5 * time.Minute // Contentful's own library accepts 30 s, which allows clocks no difference
	contentfulMost      = 64              // headers that are signed
)

// contentfulScheme is an HMAC over a request in canonical form: the method, the path, the headers that a header lists,
// and the body, each on a line of its own.
type contentfulScheme struct{}

// Contentful returns the scheme of Contentful's webhooks.
func Contentful() spec.Scheme { return contentfulScheme{} }

func (contentfulScheme) MarshalText() ([]byte, error) { return []byte("contentful"), nil }
func (contentfulScheme) Covers() spec.Coverage        { return spec.CoversBody }
func (contentfulScheme) Imitable() bool               { return true }
func (contentfulScheme) Carrier() spec.Value          { return "header:" + contentfulHeader }

// Signs is true for the body and the URL, of which it is the path. Which headers are signed each request says.
func (contentfulScheme) Signs(v spec.Value) bool { return signsDocument(v) || v == "url" }

// contentfulSecret is what a signing secret looks like (contentful.com/developers/docs/webhooks/secrets).
var contentfulSecret = regexp.MustCompile(`\A[0-9a-zA-Z+/=_-]{64}\z`)

func (contentfulScheme) Compile(secret string) (spec.Checker, error) {
	if !contentfulSecret.MatchString(secret) {
		return nil, errors.New("is not 64 characters of letters, digits and +/=_-")
	}
	return contentfulChecker(secret), nil
}

type contentfulChecker []byte

func (key contentfulChecker) Check(req *hookonce.Request) error {
	signature, err := incoming.Required(req.Header, contentfulHeader, "64 hexadecimal digits")
	if err != nil {
		return err
	}
	text, err := incoming.Required(req.Header, contentfulTime, "milliseconds since 1970")
	if err != nil {
		return err
	}
	millis, err := strconv.ParseInt(text, 10, 64)
	if err != nil || millis < 0 {
		return incoming.Reject(hookonce.ReasonTimestampMissing, "the header %s is not milliseconds since 1970", contentfulTime)
	}
	want, err := key.sign(req)
	if err != nil {
		return err
	}
	at := time.UnixMilli(millis)
	switch {
	case !hmac.Equal([]byte(signature), want):
		return incoming.Reject(hookonce.ReasonSignatureMismatch,
			"the signature in %s was not made over the method, the path, the headers in %s and the body with the secret; check the secret, and that the URL is the one registered with Contentful",
			contentfulHeader, contentfulList)
	case at.Before(req.Now.Add(-contentfulTolerance)):
		return incoming.Reject(hookonce.ReasonTimestampOld, "the request was signed more than %v before the time of arrival", contentfulTolerance)
	case at.After(req.Now.Add(contentfulTolerance)):
		return incoming.Reject(hookonce.ReasonTimestampFuture, "the request was signed more than %v after the time of arrival", contentfulTolerance)
	}
	return nil
}

func (key contentfulChecker) sign(req *hookonce.Request) ([]byte, error) {
	headers, err := contentfulHeaders(req.Header)
	if err != nil {
		return nil, err
	}
	path, err := contentfulPath(req.URL)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(http.MethodPost + "\n" + path + "\n" + headers + "\n"))
	h.Write(req.Body)
	return hex.AppendEncode(nil, h.Sum(nil)), nil
}

// contentfulHeaders returns the headers that are signed, sorted, as name:value joined by semicolons. The list and the
// time are among them. A value in which another of them seems to begin is refused: it could be two.
func contentfulHeaders(header http.Header) (string, error) {
	list, err := incoming.Required(header, contentfulList, "names joined by commas")
	if err != nil {
		return "", err
	}
	names := strings.Split(list, ",")
	if len(names) > contentfulMost {
		return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "the header %s lists more than %d names", contentfulList, contentfulMost)
	}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, needed := range []string{contentfulTime, contentfulList} {
		if !slices.Contains(names, strings.ToLower(needed)) {
			return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "the header %s does not list %s, which must be signed", contentfulList, needed)
		}
	}
	var signed []string
	for _, name := range names {
		text, n := incoming.Single(header[http.CanonicalHeaderKey(name)])
		if n != 1 {
			return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "%s lists a header that is absent, or there with several values", contentfulList)
		}
		text = strings.TrimSpace(text)
		for _, other := range names {
			if strings.Contains(text, ";"+other+":") {
				return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "a header that is signed holds what looks like another one")
			}
		}
		signed = append(signed, name+":"+text)
	}
	return strings.Join(signed, ";"), nil
}

// contentfulPath returns the path and the query of a URL as they are signed: the query is escaped as one text, and then
// both are, as JavaScript's encodeURI does, which escapes what is escaped already once more.
func contentfulPath(address string) (string, error) {
	_, rest, found := strings.Cut(address, "://")
	slash := strings.IndexAny(rest, "/?")
	switch {
	case !found:
		return "", errors.New("the scheme signs the URL, and neither the request nor the settings have one")
	case slash < 0:
		return "/", nil
	case rest[slash] == '?':
		rest, slash = "/"+rest[slash:], 0
	}
	path, query, _ := strings.Cut(rest[slash:], "?")
	if strings.Contains(query, "?") { // what follows would not be signed
		return "", incoming.Reject(hookonce.ReasonSignatureMismatch, "the URL has two question marks, and what follows the second is not signed")
	}
	if query != "" {
		path += "?" + escapeComponent(query)
	}
	return encodeURI(path), nil
}

// escapeComponent is JavaScript's querystring.escape.
func escapeComponent(text string) string {
	return strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(text))
}

// encodeURI is that function of JavaScript.
func encodeURI(text string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789;,/?:@&=+$-_.!~*'()#"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// Seal signs at the time of the request, with the headers that begin with X-Contentful-.
func (key contentfulChecker) Seal(req *hookonce.Request) error {
	req.Header.Del(contentfulHeader)
	req.Header.Set(contentfulTime, strconv.FormatInt(req.Now.UnixMilli(), 10))
	req.Header.Set(contentfulList, "")
	var names []string
	for name := range req.Header {
		if strings.HasPrefix(name, "X-Contentful-") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	req.Header.Set(contentfulList, strings.Join(names, ","))
	signature, err := key.sign(req)
	if err != nil {
		return err
	}
	req.Header.Set(contentfulHeader, string(signature))
	return nil
}
