package hookonce

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// call is one request that is to have its effect once.
type call struct {
	Ref           // without a key if the request has none
	sent   string // the key as the client sent it, without its scope
	kind   string // for people
	digest []byte // of what the request says
	body   []byte
	*http.Request
}

// claim is what to ask the store for. Under a lease it is bound to what the request says, until it is known
// that nothing came of it.
func (c *call) claim(lease time.Duration) ClaimRequest {
	return ClaimRequest{Ref: c.Ref, Type: c.kind, Digest: c.digest, Lease: lease, Pin: lease != 0}
}

// withRequest calls use with the request for a handler: its body can be read from the beginning, ctx is its context, and its
// header is a copy: what a handler takes off is still known when the answer is made. The server deletes the temporary files of a
// form that was parsed, but knows only those of its own request: those of a form that was parsed from this copy are deleted
// here. One that a middleware had parsed before is the middleware's, or the server's.
func (c *call) withRequest(ctx context.Context, use func(*http.Request)) {
	r := c.WithContext(ctx)
	r.Header = c.Header.Clone()
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding = int64(len(c.body)), nil
	defer func() {
		if r.MultipartForm != nil && r.MultipartForm != c.MultipartForm {
			_ = r.MultipartForm.RemoveAll()
		}
	}()
	use(r)
}

// parseKey returns the key that the lines of the header field Idempotency-Key name: a string of RFC 9651,
// whose parameters count for nothing, or, unless strict, the same text without its quotes. The error's
// text is for the client.
func parseKey(lines []string, strict bool, most int) (string, error) {
	if len(lines) != 1 {
		return "", fmt.Errorf("the header is there %d times; send it once", len(lines))
	}
	text := strings.Trim(lines[0], " ")
	key, quoted := structuredString(text)
	switch {
	case !quoted && strict:
		return "", errors.New(`it is not a string in double quotes, as RFC 9651 has it`)
	case !quoted && isBareKey(text):
		key = text
	case !quoted && text != "":
		return "", errors.New(`it is neither a string in double quotes, as RFC 9651 has it, nor printable ASCII without spaces, quotes, commas, semicolons and backslashes`)
	}
	switch {
	case key == "":
		return "", errors.New("it is empty")
	case len(key) > most:
		return "", fmt.Errorf("it has %d bytes; at most %d are taken", len(key), most)
	}
	return key, nil
}

// structuredString reads an item of RFC 9651 that is a string, with any parameters, and reports whether
// text is one.
func structuredString(text string) (string, bool) {
	m := stringItem.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(m[1]), true
}

// The grammar of RFC 9651 as far as a string with parameters needs it.
const (
	sfString  = `"(?:[ !#-\[\]-~]|\\["\\])*"`
	sfNumber  = `-?(?:[0-9]{1,15}|[0-9]{1,12}\.[0-9]{1,3})`
	sfToken   = `[A-Za-z*][!#$%&'*+.^_` + "`" + `|~0-9A-Za-z:/-]*`
	sfBytes   = `:[A-Za-z0-9+/=]*:`
	sfBoolean = `\?[01]`
	sfDate    = `@-?[0-9]{1,15}`
	sfDisplay = `%"(?:[ !#$&-~]|%[0-9a-f]{2})*"`
	sfBare    = sfString + `|` + sfNumber + `|` + sfToken + `|` + sfBytes + `|` + sfBoolean + `|` + sfDate + `|` + sfDisplay
	sfParam   = `; *[a-z*][a-z0-9_.*-]*(?:=(?:` + sfBare + `))?`
)

var stringItem = regexp.MustCompile(`\A"((?:[ !#-\[\]-~]|\\["\\])*)"(?:` + sfParam + `)*\z`)

// isBareKey reports whether text can be a key without quotes. A sign that separates fields, or parameters, or is
// escaped in a string, cannot be in one: it would have to be guessed what the client meant.
func isBareKey(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '"' || c == ',' || c == ';' || c == '\\' {
			return false
		}
	}
	return text != ""
}

// scopedKey is the key under which a request is claimed. The scope may be a secret, such as a credential,
// so that only a digest of it is stored. Keys of callers who have no scopes never meet those of scopes.
func scopedKey(scope, key string) string {
	part := "any"
	if scope != "" {
		sum := sha256.Sum256([]byte(scope))
		part = hex.EncodeToString(sum[:digestLen])
	}
	return NormalKey(JoinKey(part, key))
}

// digestLen is how much of a SHA-256 tells contents apart, in bytes.
const digestLen = 16

// fingerprint returns what two requests under one key must have in common to be the same request: method, path
// and query, the named header fields, and the body byte for byte; or, of a multipart form, its parts, because
// clients make up a new boundary whenever they send one. The bytes that content returns take the place of header and body.
func fingerprint(r *http.Request, fields []string, body []byte, content func(*http.Request, []byte) []byte) []byte {
	h := sha256.New()
	media := "" // of a form
	if content != nil {
		addPart(h, "by a function") // no method is called so: no two ways of comparing meet
		body, fields = content(r, body), nil
	} else if form, of := formDigest(r.Header["Content-Type"], body); form != nil {
		addPart(h, "by its parts")
		body, media = form, of
	}
	addPart(h, r.Method)
	addPart(h, r.URL.RequestURI())
	for _, name := range fields {
		values := r.Header[name]
		if media != "" && name == "Content-Type" {
			values = []string{media}
		}
		addLen(h, len(values))
		for _, v := range values {
			addPart(h, v)
		}
	}
	h.Write(body)
	return h.Sum(nil)[:digestLen]
}

// formDigest returns a digest of the parts of a multipart form, headers and contents in their order, and the media
// type without the boundary. The digest is nil if the body is no such form, does not parse, or has too many parts.
func formDigest(contentType []string, body []byte) (digest []byte, media string) {
	if len(contentType) != 1 {
		return nil, ""
	}
	media, params, err := mime.ParseMediaType(contentType[0])
	boundary := params["boundary"]
	if err != nil || media != "multipart/form-data" || boundary == "" {
		return nil, ""
	}
	delete(params, "boundary")
	h := sha256.New()
	if hashParts(h, body, boundary) != nil {
		return nil, ""
	}
	return h.Sum(nil), mime.FormatMediaType(media, params)
}

// How many parts of a form are told apart, and how many lines of header in all of them: as many as mime/multipart gives a
// handler. Each costs many times its bytes, before anybody knows who sends them.
const (
	maxFormParts = 1000
	maxFormLines = 10_000
)

// hashParts writes the parts of a form.
func hashParts(h hash.Hash, body []byte, boundary string) error {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	// A content has its length in front, and is read twice for that: to hold it takes memory that nobody has counted.
	ahead := multipart.NewReader(bytes.NewReader(body), boundary)
	buf := make([]byte, 4<<10)
	for n, lines := 0, 0; ; n++ {
		part, err := parts.NextRawPart()
		switch {
		case err == io.EOF: // itself: one that is wrapped means that the end is missing
			return nil
		case err != nil:
			return err
		}
		addLen(h, len(part.Header))
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			lines += len(part.Header[name])
			addPart(h, name)
			addLen(h, len(part.Header[name]))
			for _, v := range part.Header[name] {
				addPart(h, v)
			}
		}
		if n >= maxFormParts || lines > maxFormLines {
			return multipart.ErrMessageTooLarge
		}
		same, err := ahead.NextRawPart()
		if err != nil {
			return err
		}
		length, err := io.Copy(io.Discard, same)
		if err != nil {
			return err
		}
		addLen(h, int(length))
		if _, err := io.CopyBuffer(h, part, buf); err != nil {
			return err
		}
	}
}

// addPart writes a part with its length in front, so that no two lists of parts look alike.
func addPart(h hash.Hash, part string) {
	addLen(h, len(part))
	io.WriteString(h, part)
}

func addLen(h hash.Hash, n int) {
	var b [8]byte
	h.Write(binary.BigEndian.AppendUint64(b[:0], uint64(n)))
}
