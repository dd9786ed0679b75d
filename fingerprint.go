package hookonce

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
)

// digestLen is how much of a SHA-256 tells contents apart, in bytes.
const digestLen = 16

// fingerprint returns what two requests under one key must have in common to be the same request: method, path
// and query, the named header fields, and the body byte for byte; or, of a multipart form, its parts, because
// clients make up a new boundary whenever they send one. What content returns takes the place of header and body.
func fingerprint(r *http.Request, fields []string, body []byte, content func(*http.Request, []byte) []byte) []byte {
	h := sha256.New()
	form, media := formDigest(r.Header["Content-Type"], body)
	switch {
	case content != nil:
		addPart(h, "by a function") // no method is called so: no two ways of comparing meet
		body, fields = content(r, body), nil
	case form != nil:
		addPart(h, "by its parts")
		body = form
	}
	addPart(h, r.Method)
	addPart(h, r.URL.RequestURI())
	for _, name := range fields {
		values := r.Header[name]
		if form != nil && name == "Content-Type" {
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
// type without the boundary. The digest is nil if the body is no such form, or does not parse.
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
	for parts := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := parts.NextRawPart()
		if err == io.EOF { // itself: one that is wrapped means that the end is missing
			return h.Sum(nil), mime.FormatMediaType(media, params)
		}
		if err != nil {
			return nil, ""
		}
		addLen(h, len(part.Header))
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			addPart(h, name)
			addLen(h, len(part.Header[name]))
			for _, v := range part.Header[name] {
				addPart(h, v)
			}
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, ""
		}
		addPart(h, string(content))
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
