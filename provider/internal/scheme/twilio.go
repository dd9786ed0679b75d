package scheme

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/spec"
)

const twilioHeader = "X-Twilio-Signature"

// twilioScheme is an HMAC over the URL and the sorted form. A body of another kind is not signed
// itself: the URL carries its hash then.
type twilioScheme struct{ formScheme }

// Twilio returns the scheme of Twilio's webhooks for messages and calls.
func Twilio() spec.Scheme { return twilioScheme{} }

func (twilioScheme) MarshalText() ([]byte, error) { return []byte("twilio"), nil }
func (twilioScheme) Carrier() spec.Value          { return "header:" + twilioHeader }

func (twilioScheme) Compile(secret string) (spec.Checker, error) {
	if err := wholeSecret(secret); err != nil {
		return nil, err
	}
	return twilioChecker(secret), nil
}

type twilioChecker []byte

func (key twilioChecker) Check(req *hookonce.Request) error {
	signature, err := incoming.Required(req.Header, twilioHeader, "28 characters of base64")
	if err != nil {
		return err
	}
	if len(signature) != base64.StdEncoding.EncodedLen(20) {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the header %s is not 28 characters of base64", twilioHeader)
	}
	form, err := twilioForm(req)
	if err != nil {
		return err
	}
	for _, address := range twilioURLs(req.URL) {
		if hmac.Equal([]byte(signature), key.sign(address+form)) {
			return nil
		}
	}
	return incoming.Reject(hookonce.ReasonSignatureMismatch,
		"the signature in %s was not made over the URL and the form with the secret; check the auth token, and that the URL is exactly the one that Twilio calls", twilioHeader)
}

// twilioEventsScheme is that of Event Streams, which send JSON: nothing but the URL is signed, with the
// hash of the body in it.
type twilioEventsScheme struct{ twilioScheme }

// TwilioEvents returns the scheme of Twilio's Event Streams.
func TwilioEvents() spec.Scheme { return twilioEventsScheme{} }

func (twilioEventsScheme) Covers() spec.Coverage { return spec.CoversBody }

func (twilioEventsScheme) Signs(v spec.Value) bool {
	tag, _, _ := strings.Cut(string(v), ":")
	return slices.Contains([]string{"url", "query", "json", "item", "parent", "const"}, tag)
}

func (s twilioEventsScheme) Compile(secret string) (spec.Checker, error) {
	c, err := s.twilioScheme.Compile(secret)
	if err != nil {
		return nil, err
	}
	return twilioEventsChecker{c.(twilioChecker)}, nil
}

type twilioEventsChecker struct{ twilioChecker }

func (c twilioEventsChecker) Check(req *hookonce.Request) error {
	if _, ok := twilioBodyHash(req.URL); !ok {
		return incoming.Reject(hookonce.ReasonSignatureMissing, "the hash of the body is not in the URL (bodySHA256); keep the query of the request")
	}
	return c.twilioChecker.Check(req)
}

// Seal puts the hash of the body into the URL, whatever the body is.
func (c twilioEventsChecker) Seal(req *hookonce.Request) error {
	if req.URL != "" {
		req.URL = withBodyHash(req.URL, req.Body)
	}
	return c.twilioChecker.Seal(req)
}

func (key twilioChecker) sign(text string) []byte {
	return base64.StdEncoding.AppendEncode(nil, hmacSHA1(key, text))
}

// Seal signs a form. Of another body it puts the hash into the URL.
func (key twilioChecker) Seal(req *hookonce.Request) error {
	if _, ok := incoming.Form(req); !ok && len(req.Body) > 0 && req.URL != "" {
		req.URL = withBodyHash(req.URL, req.Body)
	}
	form, err := twilioForm(req)
	switch {
	case req.URL == "":
		return errors.New("the scheme signs the URL, and neither the request nor the settings have one")
	case err != nil:
		return err
	}
	req.Header.Set(twilioHeader, string(key.sign(req.URL+form)))
	return nil
}

// withBodyHash returns the URL with the hash of the body as a parameter of its query, in place of one
// that is there.
func withBodyHash(address string, body []byte) string {
	place, query, _ := strings.Cut(address, "?")
	parts := slices.DeleteFunc(strings.Split(query, "&"), func(part string) bool {
		return part == "" || strings.HasPrefix(part, "bodySHA256=")
	})
	sum := sha256.Sum256(body)
	return place + "?" + strings.Join(append(parts, "bodySHA256="+hex.EncodeToString(sum[:])), "&")
}

// twilioForm returns the form as the signature covers it: sorted, every value of a field once. It is
// empty where the URL has the hash of the body.
func twilioForm(req *hookonce.Request) (string, error) {
	if hash, ok := twilioBodyHash(req.URL); ok {
		sum := sha256.Sum256(req.Body)
		if !hmac.Equal([]byte(hash), hex.AppendEncode(nil, sum[:])) {
			return "", incoming.Reject(hookonce.ReasonSignatureMismatch, "bodySHA256 in the URL is not the SHA-256 of the body in lower-case hexadecimal; check that the body is passed on byte for byte")
		}
		return "", nil
	}
	form, ok := incoming.Form(req)
	if !ok && len(req.Body) > 0 {
		return "", incoming.Reject(hookonce.ReasonSignatureMismatch, "the body is not a form and its hash is not in the URL (bodySHA256), so that the signature does not cover it")
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if strings.ContainsAny(name, "?&=#") {
			return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "the name of a field looks like the query of a URL, which is signed right before the form")
		}
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, text := range slices.Compact(values) {
			b.WriteString(name + text)
		}
	}
	return b.String(), nil
}

// twilioBodyHash returns the hash of the body that the URL carries, at either end of its query. Between
// other parameters it could be a piece of a form, which is signed right after the URL.
func twilioBodyHash(address string) (string, bool) {
	_, query, _ := strings.Cut(address, "?")
	parts := strings.Split(query, "&")
	for _, part := range []string{parts[0], parts[len(parts)-1]} {
		if hash, ok := strings.CutPrefix(part, "bodySHA256="); ok {
			return hash, true
		}
	}
	return "", false
}

// twilioURLs returns the spellings of the URL that Twilio may have signed: as it is, with and without
// the port, and each with the query encoded anew.
func twilioURLs(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return []string{address}
	}
	base, query, hasQuery := strings.Cut(address, "?")
	scheme, rest, _ := strings.Cut(base, "://")
	user, path, _ := strings.Cut(rest, u.Host)
	bare := strings.TrimSuffix(u.Host, ":"+u.Port())
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(scheme)]
	}
	var urls []string
	for _, host := range []string{u.Host, bare, bare + ":" + port} {
		plain := scheme + "://" + user + host + path
		if !hasQuery {
			urls = append(urls, plain)
			continue
		}
		urls = append(urls, plain+"?"+query, plain+"?"+reencode(query))
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

// reencode writes a query the way JavaScript's querystring does.
func reencode(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		pairs[i] = recode(name) + "=" + recode(text)
	}
	return strings.Join(pairs, "&")
}

// recode takes a text apart and encodes it with %20 for a space, leaving !'()* as they are. What can
// not be taken apart stays.
func recode(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return text
	}
	return strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(plain))
}
