package scheme

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	hook0Header    = "X-Hook0-Signature"
	hook0Shape     = "t=<unix seconds>,v0=<64 hexadecimal digits>,h=<names of headers>,v1=<64 hexadecimal digits>"
	hook0Tolerance = 5 * time.Minute
	maxHook0Names  = 16 // of headers that a signature covers
)

// hook0Scheme is that of Hook0, which others send their webhooks with. One header holds two signatures: v0 over the time
// and the body, and v1 over the time, the headers that h lists, and the body. Those that are there must be right; older
// versions write v1 only.
type hook0Scheme struct{}

// Hook0 returns the scheme of senders that use Hook0.
func Hook0() spec.Scheme { return hook0Scheme{} }

func (hook0Scheme) MarshalText() ([]byte, error) { return []byte("hook0"), nil }
func (hook0Scheme) Covers() spec.Coverage        { return spec.CoversBody }
func (hook0Scheme) Imitable() bool               { return true }
func (hook0Scheme) Carrier() spec.Value          { return "header:" + hook0Header }

// Signs is true for the body and the time. Which headers are covered is another matter in each request.
func (hook0Scheme) Signs(v spec.Value) bool { return v == "ts" || signsDocument(v) }

func (hook0Scheme) Compile(secret string) (spec.Checker, error) {
	if err := wholeSecret(secret); err != nil {
		return nil, err
	}
	return hook0Checker(secret), nil
}

type hook0Checker []byte

func (key hook0Checker) Check(req *hookonce.Request) error {
	line, err := incoming.Required(req.Header, hook0Header, hook0Shape)
	if err != nil {
		return err
	}
	sig, ok := parseHook0(line)
	if !ok {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the header %s is not %s", hook0Header, hook0Shape)
	}
	if !sig.madeWith(key, req) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch,
			"v0 or v1 in %s was not made with the secret; check the secret, and that the body and the headers that h lists are passed on as they came", hook0Header)
	}
	switch age := req.Now.Sub(sig.at); {
	case age > hook0Tolerance:
		return incoming.Reject(hookonce.ReasonTimestampOld, "the signed time is %v before the time of arrival; at most %v is accepted", age.Round(time.Second), hook0Tolerance)
	case age < -hook0Tolerance:
		return incoming.Reject(hookonce.ReasonTimestampFuture, "the signed time is %v after the time of arrival; at most %v is accepted", -age.Round(time.Second), hook0Tolerance)
	}
	return nil
}

// Seal writes both signatures, as the sender does: v1 covers the type of the body, and the id and the type of the event.
func (key hook0Checker) Seal(req *hookonce.Request) error {
	ts := strconv.FormatInt(req.Now.Unix(), 10)
	sig := hook0Signature{ts: ts}
	for _, name := range []string{"content-type", "x-event-id", "x-event-type"} {
		if _, n := incoming.Single(req.Header[http.CanonicalHeaderKey(name)]); n == 1 {
			sig.names = strings.TrimPrefix(sig.names+" "+name, " ")
		}
	}
	line := "t=" + ts + ",v0=" + hex.EncodeToString(key.sum(ts, req.Body))
	if covered, ok := sig.covered(req.Header); ok {
		line += ",h=" + sig.names + ",v1=" + hex.EncodeToString(key.sum(covered, req.Body))
	}
	req.Header.Set(hook0Header, line)
	return nil
}

// sum returns the HMAC of what stands before the body, a dot, and the body.
func (key hook0Checker) sum(before string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(before + "."))
	h.Write(body)
	return h.Sum(nil)
}

// hook0Signature is what the header says.
type hook0Signature struct {
	ts     string // as the sender wrote it
	at     time.Time
	names  string // of the headers that v1 covers, as the sender wrote them
	v0, v1 string // in hexadecimal; empty: not there
}

// hook0Part is what the name of a part may be. Signatures of other versions are ignored.
var hook0Part = regexp.MustCompile(`\A(t|h|v[0-9]{1,3})\z`)

// parseHook0 reads the header. A part that is there twice is refused, and so is h without the signature that it is for.
func parseHook0(line string) (sig hook0Signature, ok bool) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(line, ",") {
		name, text, found := strings.Cut(strings.TrimSpace(part), "=")
		if _, twice := parts[name]; twice || !found || !hook0Part.MatchString(name) {
			return sig, false
		}
		parts[name] = text
	}
	sig = hook0Signature{ts: parts["t"], names: parts["h"], v0: parts["v0"], v1: parts["v1"]}
	seconds, err := strconv.ParseInt(sig.ts, 10, 48)
	sig.at = time.Unix(seconds, 0)
	return sig, err == nil && seconds >= 0 && strconv.FormatInt(seconds, 10) == sig.ts && (sig.v0 != "" || sig.v1 != "") && (sig.v1 != "" || sig.names == "")
}

// madeWith reports whether the signatures were made with that key. Either alone is good for JSON only: what v1 signs after
// the time could be a piece of the body, and all of it is what v0 would sign of a body that begins with headers. JSON with
// something in front, or without its beginning, is none. Both together fit one body only.
func (sig hook0Signature) madeWith(key hook0Checker, req *hookonce.Request) bool {
	if sig.v0 != "" && !is(sig.v0, key.sum(sig.ts, req.Body)) {
		return false
	}
	if sig.v1 != "" {
		if covered, ok := sig.covered(req.Header); !ok || !is(sig.v1, key.sum(covered, req.Body)) {
			return false
		}
	}
	return sig.v0 != "" && sig.v1 != "" || json.Valid(req.Body)
}

// is reports whether a text is those bytes in hexadecimal.
func is(text string, sum []byte) bool { return hmac.Equal([]byte(text), hex.AppendEncode(nil, sum)) }

// hook0Name is what the name of a header that is signed looks like. A dot would make it a part of what follows.
var hook0Name = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// covered returns what v1 covers besides the body: the time, the names of headers, and their values. It is false where
// a name is none, or where its header is absent or there with several values.
func (sig hook0Signature) covered(h http.Header) (string, bool) {
	names := strings.Split(sig.names, " ")
	if len(names) > maxHook0Names {
		return "", false
	}
	parts := []string{sig.ts, sig.names}
	for _, name := range names {
		if !hook0Name.MatchString(name) {
			return "", false
		}
		text, n := incoming.Single(h[http.CanonicalHeaderKey(name)])
		if n != 1 {
			return "", false
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "."), true
}
