package spec

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
)

// Verify describes one way of signing.
type Verify struct {
	// Kind is the mechanism. Default [HMAC].
	Kind Kind `yaml:"kind,omitempty" only:"hmac,hash,ed25519,ecdsa,rsa,jwt,http_signature,token,basic"`
	// Hash is the hash function of an HMAC, a plain hash or an RSA signature. Default [SHA256].
	Hash Hash `yaml:"hash,omitempty"`
	// Key is how a secret's text becomes a key. Default [KeyUTF8]; [KeyPEM] for ECDSA and RSA, [KeyHex]
	// for Ed25519, [KeyJWK] for a JWT of ES or RS. An HTTP signature with a public key takes [KeyPEM], the default there,
	// [KeyJWK], and an Ed25519 key in [KeyHex] or [KeyBase64].
	Key KeyForm `yaml:"key,omitempty"`
	// Encoding is how the signature is written. Default [Hex] for HMAC, hash and Ed25519, [Base64] for
	// ECDSA and RSA.
	Encoding Encoding `yaml:"encoding,omitempty"`
	// Signature says where the signature, the token or the JWT is.
	Signature Signature `yaml:"signature,omitempty"`
	// ID is the identifier that is signed along with the body, where the scheme has one: a header.
	// Other values refer to it as "id".
	ID Value `yaml:"id,omitempty"`
	// Time is the signed time of the attempt, where the scheme has one. Other values refer to it as
	// "ts". It must be in Sign, or a json: value under a signed body: a tolerance on a time that is not
	// signed protects nobody.
	Time *Timestamp `yaml:"time,omitempty"`
	// Sign lists what is signed, joined by Join. See [Value]. What is absent counts as empty; a request in
	// which one of them is there twice with different values, or is no text, is rejected.
	Sign []Value `yaml:"sign,omitempty,flow"`
	// Join stands between the parts of Sign. Default: nothing.
	Join string `yaml:"join,omitempty"`
	// Unescape lists the characters whose escapes in the URL are undone before it is signed: with "/" the text %2F, in
	// capitals as it stands here, is signed as a slash. Printable ASCII. Default: none, the URL is signed as it is.
	Unescape string `yaml:"unescape,omitempty"`
	// Covers says what the signature binds. It follows from Sign, except where Sign has no body: then
	// it must be said, so that nobody leaves the body out by accident. Under [CoversFields] a member
	// whose name differs from one that is signed by letter case only rejects the request: some parsers
	// would take it for that one.
	Covers Coverage `yaml:"covers,omitempty"`
	// PerItem is set if each item of a batch carries a signature of its own. One that is wrong rejects
	// the request, and so does something else in place of the items' array, or beside it a member whose
	// name differs by letter case only.
	PerItem bool `yaml:"per_item,omitempty"`
	// BodyHash names the claim of a JWT that holds the body's SHA-256 in hexadecimal. Without it the
	// token does not bind the body.
	BodyHash string `yaml:"body_hash,omitempty"`
	// URLHash names the claim of a JWT that holds the SHA-256, in hexadecimal, of the URL that the sender calls. See
	// [Settings.URL].
	URLHash string `yaml:"url_hash,omitempty"`
	// Claims lists claims that a JWT must have, and the text of each, such as iss: acme. Of an HTTP signature it lists the
	// parameters keyid and tag.
	Claims map[string]string `yaml:"claims,omitempty"`
	// Algorithms lists the accepted algorithms of a JWT, such as ES256, or of an HTTP signature, such as ed25519. Required
	// there.
	Algorithms []string `yaml:"algorithms,omitempty,flow"`
	// Tokens reads and makes the tokens of a JWT: jose.Tokens{}, of the package provider/spec/jose. Required there; a
	// specification that package specyaml reads has it.
	Tokens Tokens `yaml:"-"`
	// Scheme is code for what data cannot express. It comes from the catalogue only.
	Scheme Scheme `yaml:"scheme,omitempty"`
}

// withDefaults fills in what the kind of the verification suggests.
func (v Verify) withDefaults() Verify {
	v.Kind = cmp.Or(v.Kind, HMAC)
	v.Hash = cmp.Or(v.Hash, SHA256)
	switch v.Kind {
	case Ed25519:
		v.Key = cmp.Or(v.Key, KeyHex)
	case ECDSA, RSA:
		v.Key, v.Encoding = cmp.Or(v.Key, KeyPEM), cmp.Or(v.Encoding, Base64)
	case JWT:
		v.Signature.In = cmp.Or(v.Signature.In, "header:Authorization")
	case HTTPSignature:
		v.Signature.In = cmp.Or(v.Signature.In, "header:"+httpsig.SignatureHeader)
		if !v.sharesSecret() {
			v.Key = cmp.Or(v.Key, KeyPEM)
		}
		if v.Time == nil {
			v.Time = &Timestamp{In: "claim:created", Past: 5 * time.Minute, Future: 5 * time.Minute}
		}
	case Basic:
		v.Signature.In, v.Signature.Prefix = cmp.Or(v.Signature.In, "header:Authorization"), cmp.Or(v.Signature.Prefix, "Basic ")
	}
	v.Key = cmp.Or(v.Key, KeyUTF8)
	v.Encoding = cmp.Or(v.Encoding, Hex)
	if v.Time != nil {
		ts := *v.Time
		ts.Unit = cmp.Or(ts.Unit, Seconds)
		v.Time = &ts
	}
	v.Covers = cmp.Or(v.Covers, v.coverage())
	return v
}

// coverage is what follows from the kind and from Sign. Empty: it must be said.
func (v Verify) coverage() Coverage {
	switch {
	case v.Kind == Token || v.Kind == Basic:
		return CoversNothing
	case v.Kind == Code && v.Scheme != nil:
		return v.Scheme.Covers()
	case v.Kind == HTTPSignature:
		return CoversBody
	case v.Kind == JWT && v.BodyHash != "", slices.Contains(v.Sign, "body"):
		return CoversBody
	case slices.Contains(v.Sign, "sorted_form"):
		return CoversFields // as one text: of none is it known where it ends
	case v.Kind == JWT:
		return CoversNothing
	}
	return ""
}

// Kind names a mechanism of verification.
type Kind string

// The kinds.
const (
	// HMAC is a keyed hash over Sign.
	HMAC Kind = "hmac"
	// PlainHash is a hash over Sign, in which "secret" stands for the secret.
	PlainHash Kind = "hash"
	// Ed25519, ECDSA (P-256, the signature in ASN.1 DER) and RSA (PKCS #1 v1.5) are signatures with a
	// private key; the secret is the public key.
	Ed25519 Kind = "ed25519"
	ECDSA   Kind = "ecdsa"
	RSA     Kind = "rsa"
	// JWT is a signed token. The secret is the shared secret, a PEM public key, or a JWK or set of
	// them, of which the token's kid selects one. A key that is for none of the algorithms is refused;
	// in a set it is left out.
	JWT Kind = "jwt"
	// HTTPSignature is an HTTP message signature (RFC 9421). It has to cover the method, the URL (see [Settings.URL]), the
	// Content-Digest (RFC 9530) of a body, which is compared with that, and the headers in Sign. The secret is the shared
	// secret of hmac-sha256, or a public key. It must say when it was created; Time, claim:created, is five minutes off at
	// most unless it says otherwise. Several signatures may come, of which one must be good.
	HTTPSignature Kind = "http_signature"
	// Token is a fixed text that is sent along. It binds nothing.
	Token Kind = "token"
	// Basic is HTTP basic authentication; the secret is user:password. It binds nothing.
	Basic Kind = "basic"
	// Code is a [Scheme] of the catalogue.
	Code Kind = "code"
)

// Coverage says what a signature binds.
type Coverage string

// The coverages.
const (
	CoversBody    Coverage = "body"    // the whole body
	CoversFields  Coverage = "fields"  // the fields that are in Sign
	CoversNonce   Coverage = "nonce"   // a time or number only: the body can be changed
	CoversCRC32   Coverage = "crc32"   // a checksum of the body that is easily met by another
	CoversNothing Coverage = "nothing" // a secret is sent along
)

// Signature says where a signature is and in which format. The text is cut into entries at Split; the
// entries after the first Skip that begin with Prefix are signatures, all others are ignored. That
// covers:
//
//	plain           Prefix ""         Split ""             B23tXN68...
//	prefix          Prefix "sha256="  Split ""             sha256=7571...
//	key and value   Prefix "v1="      Split ","            t=1492774577,v1=5257...,v1=6ffb...
//	space list      Prefix "v1,"      Split " "            v1,g0hM... v1,bm9l...
//	positional      Prefix ""         Split ","   Skip 1   1492774577,5257...,6ffb...
type Signature struct {
	// In is where the text is: a header:, json:, item:, form: or query: value. A header's name that
	// ends in -* stands for the names with 1, 2, 3 and so on in its place, up to 100.
	In Value `yaml:"in,omitempty"`
	// Split separates entries. Empty: the whole text is one entry. White space around entries is
	// ignored, and so is the white space in Split, which the signer writes.
	Split string `yaml:"split,omitempty"`
	// Skip is the number of entries at the beginning that are something else.
	Skip int `yaml:"skip,omitempty"`
	// Trim lists characters that are ignored around an entry, besides white space. A sender that ends entries in a comma
	// now and then needs it.
	Trim string `yaml:"trim,omitempty"`
	// Prefix precedes the signature in its entry.
	Prefix string `yaml:"prefix,omitempty"`
	// Repeated is set if the header may occur several times with different signatures. Otherwise such
	// a request is rejected: there is no telling which one is meant.
	Repeated bool `yaml:"repeated,omitempty"`
}

// Timestamp describes the signed time of an attempt.
type Timestamp struct {
	// In is where the time is: a header: or json: value, "part:" with the prefix of an entry of the
	// signature's text, or "entry:" with its number from 0.
	In Value `yaml:"in"`
	// Unit is how the time is written. Default [Seconds].
	Unit Unit `yaml:"unit,omitempty"`
	// Past and Future are how far the time may be behind and ahead of the time of arrival. Zero
	// means not enforced.
	Past   time.Duration `yaml:"past,omitempty"`
	Future time.Duration `yaml:"future,omitempty"`
}

// Hash names a hash function.
type Hash string

// The hash functions.
const (
	SHA1   Hash = "sha1"
	SHA256 Hash = "sha256"
	SHA512 Hash = "sha512"
)

// KeyForm names how a secret's text becomes a key.
type KeyForm string

// The forms of keys.
const (
	// KeyUTF8 uses the text as it is.
	KeyUTF8 KeyForm = "utf8"
	// KeyBase64 decodes standard base64, with or without padding.
	KeyBase64 KeyForm = "base64"
	// KeyHex decodes hexadecimal digits.
	KeyHex KeyForm = "hex"
	// KeyWhsec decodes the base64 after "whsec_"; the prefix may be missing. Before it "v1," may stand, as some senders
	// show it.
	KeyWhsec KeyForm = "whsec"
	// KeyWhsecOnly is KeyWhsec for senders that have secrets of another form as well: one without the prefix, or without
	// base64 behind it, belongs to another way of signing. One that has both is never taken for a token that is sent along.
	KeyWhsecOnly KeyForm = "whsec_only"
	// KeyWhpk decodes the base64 after "whpk_", an Ed25519 public key. Before it "v1a," may stand.
	KeyWhpk KeyForm = "whpk"
	// KeySHA1 is the SHA-1 of the text.
	KeySHA1 KeyForm = "sha1"
	// KeyNFKD is the text in Unicode's normalization form NFKD.
	KeyNFKD KeyForm = "nfkd"
	// KeyPEM is a public key in PEM, or the base64 in that without the lines around it.
	KeyPEM KeyForm = "pem"
	// KeyJWK is a JSON Web Key, or a set of them.
	KeyJWK KeyForm = "jwk"
)

// Encoding names how a signature is written. A signature in another spelling of the same bytes
// (capital hexadecimal digits, other padding) is not accepted.
type Encoding string

// The encodings.
const (
	// Hex is lower-case hexadecimal.
	Hex Encoding = "hex"
	// Base64 is standard base64 with padding.
	Base64 Encoding = "base64"
	// Base64URL is URL-safe base64 without padding.
	Base64URL Encoding = "base64url"
)

// Unit names how a time is written.
type Unit string

// The units.
const (
	// Seconds since 1970, decimal digits only.
	Seconds Unit = "s"
	// Millis are milliseconds since 1970, decimal digits only.
	Millis Unit = "ms"
	// RFC3339 is the text form, with or without fractional seconds.
	RFC3339 Unit = "rfc3339"
)

// Scheme is code that verifies what data cannot express. Implementations are immutable, safe for
// concurrent use, and written by the catalogue.
type Scheme interface {
	// MarshalText returns the scheme's name, as in "twilio".
	MarshalText() ([]byte, error)
	// Covers says what the signature binds.
	Covers() Coverage
	// Signs reports whether the signature covers what that value names. For ts it says whether the time of the attempt is
	// signed, so that the signature has to be made anew where the request is passed on later.
	Signs(Value) bool
	// Compile prepares one secret. Errors never contain it.
	Compile(secret string) (Checker, error)
}

// Checker verifies with one secret.
type Checker interface {
	// Check returns nil if the request is authentic. It returns a *[hookonce.RejectError] if it is not,
	// and any other error if that cannot be decided now: the sender is asked to come again.
	Check(req *hookonce.Request) error
}

// Decoder is implemented by a [Scheme] whose sender does not write JSON. The body has been verified by
// then.
type Decoder interface {
	// Decode returns the JSON document in which the values of the specification are looked up.
	Decode(req *hookonce.Request) ([]byte, error)
}

// Imitator is implemented by a [Scheme] whose secret is shared with the sender.
type Imitator interface {
	// Imitable reports whether every checker is a [Sealer].
	Imitable() bool
	// Carrier says where the signature is.
	Carrier() Value
}

// A Checker may also be a [Sealer], which signs, and a [Responder], which answers challenges.
type (
	// Sealer signs a request the way the sender does.
	Sealer interface {
		Seal(req *hookonce.Request) error
	}
	// Responder computes the answer to a challenge with the secret that signs.
	Responder interface {
		Respond(challenge string) string
		// Signed returns the text that the signature of a request is made over. A request in which that
		// looks like a challenge is refused: its signature could have been obtained by asking.
		Signed(req *hookonce.Request) string
	}
)

// Tokens reads and makes JSON Web Tokens. Package provider/spec/jose implements it, and brings a library that only
// those programs carry that import it.
type Tokens interface {
	// Keys yields the keys of a JSON Web Key, or of a set of them, with their ids, each as the standard library has
	// it. An error says what the text is not, and contains none of it.
	Keys(text string) (iter.Seq2[string, any], error)
	// Verify returns the payload of a token in compact form, if it has one of the algorithms and was signed with one of
	// the keys that are given for its id.
	Verify(token string, algorithms []string, keys func(id string) []any) (payload []byte, ok bool)
	// Sign returns a token in compact form, made with a shared secret.
	Sign(payload []byte, algorithm string, secret []byte) (token string, err error)
}
