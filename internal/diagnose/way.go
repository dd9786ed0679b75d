package diagnose

import (
	"iter"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// otherWays yields specifications that differ in how the signature is made, and what is wrong with the one that there is then.
func (s *search) otherWays() iter.Seq2[spec.Spec, note] {
	return func(yield func(spec.Spec, note) bool) {
		for i, v := range s.Spec.WithDefaults().Verify {
			with := func(n note, edit func(*spec.Verify)) bool {
				known := s.Spec
				known.Verify = slices.Clone(s.Spec.Verify)
				edit(&known.Verify[i])
				return yield(known, n)
			}
			mac := v.Kind == spec.HMAC || v.Kind == spec.PlainHash
			if mac && !s.elsewhereInHeader(v, with) || mac && !otherHash(v, with) || !otherForm(v, with) || mac && s.own() && !otherContent(v, s.req.Header, with) {
				return
			}
		}
	}
}

// own reports whether the specification is one that somebody wrote for a sender that is not in the catalogue.
func (s *search) own() bool {
	_, err := provider.Lookup(s.Spec.Name)
	return err != nil || s.Spec.Name == "hmac"
}

const ownSpec = "in a specification of your own write "

// signatureText is a signature as a header may have it by itself.
var signatureText = regexp.MustCompile(`^((?:hmac-)?(?:sha1|sha256|sha512)=|v[01]=)?([0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128}|[A-Za-z0-9+/]{27}=|[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{86}==)$`)

// form returns the hash and the encoding that a signature of that length has.
func form(signature string) (spec.Hash, spec.Encoding) {
	switch len(signature) {
	case 28:
		return spec.SHA1, spec.Base64
	case 44:
		return spec.SHA256, spec.Base64
	case 88:
		return spec.SHA512, spec.Base64
	case 40:
		return spec.SHA1, spec.Hex
	case 128:
		return spec.SHA512, spec.Hex
	}
	return spec.SHA256, spec.Hex
}

// elsewhereInHeader tries what looks like a signature in every header.
func (s *search) elsewhereInHeader(v spec.Verify, with func(note, func(*spec.Verify)) bool) bool {
	looked := 0
	for _, name := range slices.Sorted(maps.Keys(s.req.Header)) {
		m := signatureText.FindStringSubmatch(s.req.Header.Get(name))
		if m == nil || looked == 20 {
			continue
		}
		looked++
		hash, encoding := form(m[2])
		n := note{HeaderRenamed, "its signature is in the header " + shown(name), "have what is in front pass on the header that the sender writes"}
		own := strings.EqualFold("header:"+name, string(v.Signature.In))
		switch {
		case hash != v.Hash:
			n = note{SignatureHash, "the signature in the header " + shown(name) + " is made with " + hashNames[hash] + ", and one with " + hashNames[v.Hash] + " is wanted",
				"look for the header with the other one, " + strings.TrimPrefix(string(v.Signature.In), "header:") + ", or " + ownSpec + "hash: " + string(hash)}
		case own && encoding != v.Encoding:
			n = note{SignatureEncoding, "the signature is written in " + encodingNames[encoding] + ", and one in " + encodingNames[v.Encoding] + " is wanted", ownSpec + "encoding: " + string(encoding)}
		case own:
			n = note{SignatureForm, "the signature is written in another form than the specification says", ownSpec + "below signature: another prefix"}
		}
		if !with(n, func(v *spec.Verify) {
			v.Signature = spec.Signature{In: spec.Value("header:" + name), Prefix: m[1]}
			v.Hash, v.Encoding = hash, encoding
		}) {
			return false
		}
	}
	return true
}

var (
	hashNames     = map[spec.Hash]string{spec.SHA1: "SHA-1", spec.SHA256: "SHA-256", spec.SHA512: "SHA-512"}
	encodingNames = map[spec.Encoding]string{spec.Hex: "hexadecimal", spec.Base64: "base64", spec.Base64URL: "base64 for URLs"}
)

// otherHash tries other hash functions and encodings.
func otherHash(v spec.Verify, with func(note, func(*spec.Verify)) bool) bool {
	for _, hash := range []spec.Hash{spec.SHA256, spec.SHA1, spec.SHA512} {
		for _, encoding := range []spec.Encoding{spec.Hex, spec.Base64, spec.Base64URL} {
			n := note{SignatureHash, "the signature is made with " + hashNames[hash] + ", and one with " + hashNames[v.Hash] + " is wanted", ownSpec + "hash: " + string(hash)}
			switch {
			case hash == v.Hash && encoding == v.Encoding:
				continue
			case hash == v.Hash:
				n = note{SignatureEncoding, "the signature is written in " + encodingNames[encoding] + ", and one in " + encodingNames[v.Encoding] + " is wanted", ownSpec + "encoding: " + string(encoding)}
			}
			if !with(n, func(v *spec.Verify) { v.Hash, v.Encoding = hash, encoding }) {
				return false
			}
		}
	}
	return true
}

// otherForm tries other forms of keys.
func otherForm(v spec.Verify, with func(note, func(*spec.Verify)) bool) bool {
	forms := map[spec.KeyForm]string{
		spec.KeyUTF8:   "is used as it stands, and is not decoded",
		spec.KeyBase64: "is decoded from base64 before it is used",
		spec.KeyHex:    "is decoded from hexadecimal before it is used",
		spec.KeyWhsec:  "is decoded from base64 without its beginning whsec_ before it is used",
	}
	switch v.Kind {
	case spec.HMAC, spec.PlainHash:
	case spec.Ed25519, spec.ECDSA, spec.RSA:
		forms = map[spec.KeyForm]string{spec.KeyHex: "is a public key in hexadecimal", spec.KeyBase64: "is a public key in base64", spec.KeyPEM: "is a public key in PEM"}
	default:
		return true
	}
	for _, key := range slices.Sorted(maps.Keys(forms)) {
		if key != v.Key && !with(note{SecretEncoding, "the secret " + forms[key] + " by this sender", ownSpec + "key: " + string(key) + "; else give it in the form of this provider"},
			func(v *spec.Verify) { v.Key = key }) {
			return false
		}
	}
	return true
}

// contents are what senders sign besides what a specification says.
var contents = []struct {
	is   string
	sign []spec.Value
}{
	{"the body alone", []spec.Value{"body"}},
	{"the time, a dot and the body", []spec.Value{"ts", "const:.", "body"}},
	{"the time and the body with nothing between them", []spec.Value{"ts", "body"}},
	{"the time, a colon and the body", []spec.Value{"ts", "const::", "body"}},
	{"v0, the time and the body, with colons between them", []spec.Value{"const:v0:", "ts", "const::", "body"}},
	{"the body, a dot and the time", []spec.Value{"body", "const:.", "ts"}},
	{"the body and the time with nothing between them", []spec.Value{"body", "ts"}},
	{"the time, a line break and the body", []spec.Value{"ts", "const:\n", "body"}},
	{"the id, the time and the body, with dots between them", []spec.Value{"id", "const:.", "ts", "const:.", "body"}},
	{"the id, the time and the body with nothing between them", []spec.Value{"id", "ts", "body"}},
	{"the URL and the body", []spec.Value{"url", "body"}},
	{"the body and the URL", []spec.Value{"body", "url"}},
	{"the method, the URL and the body", []spec.Value{"method", "url", "body"}},
}

// timeIn finds the place of a time that a specification does not name, nil if there is none.
func timeIn(v spec.Verify, header http.Header) *spec.Timestamp {
	name, _ := strings.CutPrefix(string(v.Signature.In), "header:")
	if v.Signature.Split != "" {
		for entry := range strings.SplitSeq(header.Get(name), strings.TrimSpace(v.Signature.Split)) {
			if begin, at, ok := strings.Cut(strings.TrimSpace(entry), "="); ok && len(times(at)) > 0 {
				return &spec.Timestamp{In: spec.Value("part:" + begin + "=")}
			}
		}
	}
	for _, other := range slices.Sorted(maps.Keys(header)) {
		if strings.Contains(strings.ToLower(other), "time") && len(times(header.Get(other))) > 0 {
			return &spec.Timestamp{In: spec.Value("header:" + other)}
		}
	}
	return nil
}

// otherContent tries what else the signature of a sender may cover.
func otherContent(v spec.Verify, header http.Header, with func(note, func(*spec.Verify)) bool) bool {
	for _, c := range contents {
		timed, named := slices.Contains(c.sign, "ts"), slices.Contains(c.sign, "id")
		if named && v.ID == "" {
			continue
		}
		ts := v.Time
		if timed && ts == nil {
			if ts = timeIn(v, header); ts == nil {
				continue
			}
		}
		texts := make([]string, len(c.sign))
		for i, part := range c.sign {
			texts[i] = `"` + strings.ReplaceAll(string(part), "\n", `\n`) + `"`
		}
		n := note{SignatureContent, "the signature covers " + c.is + ", and the specification says something else", "write sign: [" + strings.Join(texts, ", ") + "]"}
		if timed && v.Time == nil {
			n.mend += " and time: {in: " + shown(string(ts.In)) + "}"
		}
		if !with(n, func(v *spec.Verify) {
			v.Sign, v.Join, v.Covers = c.sign, "", ""
			if v.Time = ts; !timed {
				v.Time = nil
			}
			if !named {
				v.ID = ""
			}
		}) {
			return false
		}
	}
	return true
}
