package diagnose

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// guess says what the request and the secret look like, where no change makes the signature fit. Rejection is nil if the secrets
// are of no form that the sender has.
func (c Capture) guess(rejection *hookonce.RejectError) Cause {
	type look = func() (Cause, bool)
	looks := []look{c.shape, c.lacksBeginning, c.unusable}
	if rejection != nil {
		switch missing := func() (Cause, bool) { return c.missing(rejection) }; {
		case rejection.Header != "" || rejection.Reason == hookonce.ReasonSignatureMissing || rejection.Reason == hookonce.ReasonTimestampMissing:
			looks = []look{c.empty, c.looksLikeAnother, missing}
		case rejection.Reason == hookonce.ReasonSignatureMalformed:
			looks = []look{c.empty, c.httpSignature, func() (Cause, bool) { return c.malformed(rejection) }}
		default:
			looks = []look{c.damage, c.shape, c.httpSignature, c.withoutType, c.withoutURL, c.localURL, c.lacksBeginning, c.sorted, c.other}
		}
	}
	for _, look := range looks {
		if found, ok := look(); ok {
			return found
		}
	}
	return Cause{Word: OtherSecret, Text: "nothing that was tried fits", Mend: "compare the secret with the sender's page, and capture the request anew"}
}

// empty finds a header of the signature with nothing in it.
func (c Capture) empty() (Cause, bool) {
	for _, name := range carriers(c.Spec) {
		if values := c.Request.Header[name]; len(values) > 0 && strings.TrimSpace(strings.Join(values, "")) == "" {
			return Cause{Word: HeaderEmpty, Text: "the header " + name + " is there, and nothing is in it", Mend: "give its value: a variable that is not set leaves nothing"}, true
		}
	}
	return Cause{}, false
}

// missing says which header did not arrive.
func (c Capture) missing(r *hookonce.RejectError) (Cause, bool) {
	if _, notes := c.renames(); len(notes) > 0 {
		return Cause{Word: notes[0].word, Text: notes[0].text, Mend: notes[0].mend}, true
	}
	name := r.Header
	cause := Cause{Word: HeaderMissing, Text: r.Detail, Mend: "give the request as the sender made it"}
	switch {
	case name != "" && len(c.Request.Header) == 0:
		cause.Text = "no header of the request is given, and " + name + " is needed"
		cause.Mend = "give its headers: -H '" + name + ": ...'"
	case name != "":
		cause.Text = "the header " + name + " is missing, which " + c.Spec.Title + " sends with every request"
		cause.Mend = "add it with -H; if it did not arrive, look for a proxy or a framework that drops it, and whether the sender has the endpoint's secret"
	case r.Reason == hookonce.ReasonTimestampMissing:
		cause.Word = SignatureForm
	}
	return cause, true
}

// malformed says in what a signature differs from those of the sender.
func (c Capture) malformed(r *hookonce.RejectError) (Cause, bool) {
	for _, v := range c.Spec.Verify {
		name, ok := strings.CutPrefix(string(v.Signature.In), "header:")
		if by, is := v.Scheme.(spec.Imitator); is && !ok {
			name, ok = strings.CutPrefix(string(by.Carrier()), "header:")
		}
		if value := c.Request.Header.Get(name); ok && value != "" {
			if found, ok := misformed(v, name, value, r); ok {
				return found, true
			}
		}
	}
	return Cause{Word: SignatureForm, Text: r.Detail, Mend: "give the header as it came"}, true
}

var wantedSize = regexp.MustCompile(`is not (\d+) characters`)

func misformed(v spec.Verify, name, value string, r *hookonce.RejectError) (Cause, bool) {
	name = http.CanonicalHeaderKey(name)
	whole := "give the whole header as it came"
	if strings.Contains(value, "...") || strings.Contains(value, "…") {
		return Cause{Word: SignatureCut, Text: "the header " + name + " is shortened, with dots in place of what it had", Mend: whole}, true
	}
	if strings.Contains(value, "v1a,") && v.Signature.Prefix == "v1," {
		return Cause{Word: SecretKind, Text: "the signature is made with a private key (v1a), and the secret that is given is a shared one", Mend: "give the sender's public key, which begins with whpk_"}, true
	}
	want := 0
	if m := wantedSize.FindStringSubmatch(r.Detail); m != nil {
		want, _ = strconv.Atoi(m[1])
	} else if v.Kind == spec.HMAC || v.Kind == spec.PlainHash {
		want = sizeOf(v)
	}
	if want == 0 {
		return Cause{}, false
	}
	signature, prefixed := signatureIn(v, value)
	if m := signatureText.FindStringSubmatch(signature); m != nil && len(m[2]) != want {
		hash, encoding := form(m[2])
		if v.Kind != spec.Code && (hash != v.Hash || encoding != v.Encoding) {
			return Cause{Word: SignatureHash, Text: "the signature in the header " + name + " has the length of one with " + hashNames[hash] + " in " + encodingNames[encoding] +
				", and one with " + hashNames[v.Hash] + " in " + encodingNames[v.Encoding] + " is wanted", Mend: "look for the header with that one: some senders send both"}, true
		}
	}
	n := len(signature)
	switch {
	case !prefixed:
		return Cause{Word: SignatureForm, Text: "the header " + name + " has no part that begins with " + strings.TrimSpace(v.Signature.Prefix) + ", as the sender writes it", Mend: whole}, true
	case n < want:
		return Cause{Word: SignatureCut, Text: "the signature in the header " + name + " is cut off: " + plural(int64(n), "character") + " of " + strconv.Itoa(want) + " are there", Mend: whole}, true
	case n > want:
		return Cause{Word: SignatureCut, Text: "the signature in the header " + name + " is too long: it has " + strconv.Itoa(n) + " characters in place of " + strconv.Itoa(want), Mend: whole}, true
	}
	return Cause{Word: HeaderChanged, Text: "the signature in the header " + name + " has characters that none has", Mend: whole}, true
}

// sizeOf returns how many characters a signature has.
func sizeOf(v spec.Verify) int {
	size := map[spec.Hash]int{spec.SHA1: 20, spec.SHA256: 32, spec.SHA512: 64}[v.Hash]
	switch v.Encoding {
	case spec.Base64:
		return (size + 2) / 3 * 4
	case spec.Base64URL:
		return (size*8 + 5) / 6
	}
	return 2 * size
}

// signatureIn returns the first signature in a header's value, or what may be one, and whether it has the beginning that the
// sender writes.
func signatureIn(v spec.Verify, value string) (string, bool) {
	entries := []string{value}
	if sep := strings.TrimSpace(v.Signature.Split); sep != "" {
		entries = strings.Split(value, sep)
	} else if v.Signature.Split != "" {
		entries = strings.Fields(value)
	}
	for _, entry := range entries[min(v.Signature.Skip, len(entries)):] {
		if signature, ok := strings.CutPrefix(strings.TrimSpace(entry), v.Signature.Prefix); ok {
			return signature, true
		}
	}
	return strings.TrimSpace(value), false
}

// withoutType finds a form that nothing says to be one, where that decides what is signed.
func (c Capture) withoutType() (Cause, bool) {
	signsForm := c.Spec.Verify[0].Kind == spec.Code && c.Spec.Example.Form != ""
	if !signsForm || c.Request.Header.Get("Content-Type") != "" || len(c.Request.Body) == 0 {
		return Cause{}, false
	}
	return Cause{Word: ContentType, Text: "the signature covers the fields of a form, and no header Content-Type says that the body is one", Mend: "add -H 'Content-Type: application/x-www-form-urlencoded'"}, true
}

// withoutURL finds that the URL is covered and not given.
func (c Capture) withoutURL() (Cause, bool) {
	if !c.Spec.SignsURL() || c.Settings.URL != "" || c.Request.URL != "" {
		return Cause{}, false
	}
	return Cause{Word: URLMissing, Text: "the signature covers the URL, which is not given", Mend: "give the URL that the sender called with --url, or with --signed-url where it is registered with the sender as another one"}, true
}

// localURL finds that the URL is covered, and that no sender outside can have called the one that is given.
func (c Capture) localURL() (Cause, bool) {
	u, err := url.Parse(signedURL(c.Settings.URL, c.Request.URL))
	if !c.Spec.SignsURL() || err != nil || u.Hostname() == "" {
		return Cause{}, false
	}
	host := u.Hostname()
	at, err := netip.ParseAddr(host)
	if err == nil && !at.IsLoopback() && !at.IsPrivate() && !at.IsLinkLocalUnicast() {
		return Cause{}, false
	}
	if local := strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".localhost"); err != nil && strings.Contains(host, ".") && !local {
		return Cause{}, false
	}
	return Cause{Word: URLHost, Text: "the URL is one that only this network knows, and the sender called another one", Mend: registerIt + ", such as that of the tunnel or the proxy"}, true
}

// unusable says that a secret has no form that the sender has.
func (c Capture) unusable() (Cause, bool) {
	_, err := spec.New(c.Spec, spec.Settings{Secrets: c.Settings.Secrets})
	if err == nil {
		return Cause{}, false
	}
	text := err.Error()
	if _, why, ok := strings.Cut(text, " of "+strconv.Itoa(len(c.Settings.Secrets))+" "); ok {
		text = "the secret " + why
	}
	return Cause{Word: SecretForm, Text: text, Mend: "give " + c.Spec.Secret}, true
}

// other says that the secret is another one, as far as can be told.
func (c Capture) other() (Cause, bool) {
	cause := Cause{Word: OtherSecret, Text: "the secret is another one than the sender signed with, or the body is not the one that it sent, in a way that cannot be undone",
		Mend: "compare the secret with the sender's page: each endpoint has its own, a test environment has others than the live one, and one that was replaced signs no more; if it is the right one, capture the body before anything parses it"}
	sends := c.Spec.Verify[0]
	if sends.Covers == spec.CoversNothing {
		cause.Text = "the request brings another secret along than the one that is given"
		cause.Mend = "compare the secret with what is entered at the sender"
	}
	if c.Spec.SignsURL() {
		cause.Text = "the secret is another one than the sender signed with, or the URL or the body is not the one that it signed"
		cause.Mend += "; and compare the URL with the one that is registered with the sender, to the last character"
	}
	c.otherHTTP(&cause)
	return cause, true
}
