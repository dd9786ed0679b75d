package provider

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
	"github.com/hookonce/hookonce/provider/spec"
)

const twilioHeader = "X-Twilio-Signature"

// twilioScheme is an HMAC over the URL and the sorted form. A body of another kind is not signed
// itself: the URL carries its hash then.
type twilioScheme struct{}

func (twilioScheme) MarshalText() ([]byte, error) { return []byte("twilio"), nil }
func (twilioScheme) Covers() spec.Coverage        { return spec.CoversBody }
func (twilioScheme) Imitable() bool               { return true }

// Signs is true for what is in the body or in the URL. Fields of a form that occur with several values,
// not all of which may be signed, have no value.
func (twilioScheme) Signs(v spec.Value) bool {
	tag, _, _ := strings.Cut(string(v), ":")
	return slices.Contains([]string{"url", "form", "json", "item", "parent", "query", "const"}, tag)
}

func (twilioScheme) Compile(secret string) (spec.Checker, error) {
	if secret == "" || strings.TrimSpace(secret) != secret {
		return nil, errors.New("is empty or has white space around it")
	}
	return twilioChecker(secret), nil
}

type twilioChecker []byte

func (key twilioChecker) Check(req *hookonce.Request) error {
	signature, err := requiredHeader(req, twilioHeader, "28 characters of base64")
	if err != nil {
		return err
	}
	if len(signature) != base64.StdEncoding.EncodedLen(20) {
		return reject(hookonce.ReasonSignatureMalformed, "the header %s is not 28 characters of base64", twilioHeader)
	}
	forms, err := twilioForms(req)
	if err != nil {
		return err
	}
	for _, address := range twilioURLs(req.URL) {
		for _, form := range forms {
			if hmac.Equal([]byte(signature), key.sign(address+form)) {
				return nil
			}
		}
	}
	return reject(hookonce.ReasonSignatureMismatch,
		"the signature in %s was not made over the URL and the form with the secret; check the auth token, and that the URL is exactly the one that Twilio calls", twilioHeader)
}

func (key twilioChecker) sign(text string) []byte {
	return base64.StdEncoding.AppendEncode(nil, hmacSHA1(key, text))
}

// Seal signs a form. Of another body it puts the hash into the URL.
func (key twilioChecker) Seal(req *hookonce.Request) error {
	if _, ok := formOf(req); !ok && len(req.Body) > 0 && req.URL != "" {
		req.URL = withBodyHash(req.URL, req.Body)
	}
	forms, err := twilioForms(req)
	switch {
	case req.URL == "":
		return errors.New("the scheme signs the URL, and neither the request nor the settings have one")
	case err != nil:
		return err
	}
	req.Header.Set(twilioHeader, string(key.sign(req.URL+forms[0])))
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

// twilioForms returns the spellings of the form that the signature may cover: every value once, or
// the first of each field. It is empty where the URL has the hash of the body.
func twilioForms(req *hookonce.Request) ([]string, error) {
	if hash, ok := twilioBodyHash(req.URL); ok {
		sum := sha256.Sum256(req.Body)
		if !hmac.Equal([]byte(hash), hex.AppendEncode(nil, sum[:])) {
			return nil, reject(hookonce.ReasonSignatureMismatch, "bodySHA256 in the URL is not the SHA-256 of the body in lower-case hexadecimal; check that the body is passed on byte for byte")
		}
		return []string{""}, nil
	}
	form, ok := formOf(req)
	if !ok && len(req.Body) > 0 {
		return nil, reject(hookonce.ReasonSignatureMismatch, "the body is not a form and its hash is not in the URL (bodySHA256), so that the signature does not cover it")
	}
	var all, first strings.Builder
	for _, name := range slices.Sorted(maps.Keys(form)) {
		first.WriteString(name + form[name][0])
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, text := range slices.Compact(values) {
			all.WriteString(name + text)
		}
	}
	return []string{all.String(), first.String()}, nil
}

// twilioBodyHash returns the hash of the body that the URL carries.
func twilioBodyHash(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "", false
	}
	hashes := u.Query()["bodySHA256"]
	if len(hashes) == 0 {
		return "", false
	}
	return hashes[0], true
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
