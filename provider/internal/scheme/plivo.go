package scheme

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	plivoHeader     = "X-Plivo-Signature-V3"
	plivoMain       = "X-Plivo-Signature-Ma-V3" // of the main account, where a subaccount sends
	plivoNonce      = "X-Plivo-Signature-V3-Nonce"
	plivoSignatures = 16 // in one header
)

// plivoScheme is an HMAC over the URL with its query sorted, the sorted form and a nonce.
type plivoScheme struct{ formScheme }

// Plivo returns the scheme of Plivo's callbacks, version 3.
func Plivo() spec.Scheme { return plivoScheme{} }

func (plivoScheme) MarshalText() ([]byte, error) { return []byte("plivo"), nil }
func (plivoScheme) Carrier() spec.Value          { return "header:" + plivoHeader }

func (plivoScheme) Compile(secret string) (spec.Checker, error) {
	if err := wholeSecret(secret); err != nil {
		return nil, err
	}
	return plivoChecker(secret), nil
}

type plivoChecker []byte

func (key plivoChecker) Check(req *hookonce.Request) error {
	line, err := incoming.Required(req.Header, plivoHeader, "base64, several joined by commas")
	if main, n := incoming.Single(req.Header[plivoMain]); n == 1 {
		line, err = strings.Trim(line+","+main, ","), nil
	}
	if err != nil {
		return err
	}
	nonce, err := incoming.Required(req.Header, plivoNonce, "a number")
	if err != nil {
		return err
	}
	if strings.Trim(nonce, "0123456789") != "" { // a piece of the form could be moved here otherwise
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the header %s is not a number", plivoNonce)
	}
	want, err := key.sign(nonce, req)
	if err != nil {
		return err
	}
	signatures := strings.SplitN(line, ",", plivoSignatures+1)
	for _, signature := range signatures[:min(len(signatures), plivoSignatures)] {
		if hmac.Equal([]byte(strings.TrimSpace(signature)), want) {
			return nil
		}
	}
	return incoming.Reject(hookonce.ReasonSignatureMismatch,
		"the signature in %s was not made over the URL, the form and the nonce with the secret; check the auth token, and that the URL is exactly the one that Plivo calls", plivoHeader)
}

func (key plivoChecker) sign(nonce string, req *hookonce.Request) ([]byte, error) {
	text, err := plivoText(req)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text + "." + nonce))
	return base64.StdEncoding.AppendEncode(nil, h.Sum(nil)), nil
}

// plivoText returns what is signed besides the nonce: the URL without its query, that sorted after a question mark, and
// after a dot the form, sorted and with nothing between names and values. What is absent leaves its mark away, but for
// the question mark, which is also there before a form.
func plivoText(req *hookonce.Request) (string, error) {
	form, ok := incoming.Form(req)
	if !ok && len(req.Body) > 0 {
		return "", incoming.Reject(hookonce.ReasonSignatureMismatch, "the body is not a form, so that the signature does not cover it")
	}
	place, text, _ := strings.Cut(req.URL, "?")
	query, err := url.ParseQuery(text)
	if err != nil {
		return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "the query of the URL cannot be read")
	}
	asked, fields := joined(query, "=", "&"), joined(form, "", "")
	if asked != "" || len(form) > 0 {
		place += "?" + asked
	}
	if asked != "" && len(form) > 0 {
		place += "."
	}
	return place + fields, nil
}

// joined returns names and values, both sorted.
func joined(values url.Values, between, after string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, text := range slices.Sorted(slices.Values(values[name])) {
			parts = append(parts, name+between+text)
		}
	}
	return strings.Join(parts, after)
}

// Seal signs with a nonce that is the time of the request.
func (key plivoChecker) Seal(req *hookonce.Request) error {
	if req.URL == "" {
		return errors.New("the scheme signs the URL, and neither the request nor the settings have one")
	}
	nonce := req.Now.UTC().Format("20060102150405000000")
	signature, err := key.sign(nonce, req)
	if err != nil {
		return err
	}
	req.Header.Del(plivoMain)
	req.Header.Set(plivoNonce, nonce)
	req.Header.Set(plivoHeader, string(signature))
	return nil
}
