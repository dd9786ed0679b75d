package hookonce

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"net/http"
)

// digestLen is how much of a SHA-256 tells contents apart, in bytes.
const digestLen = 16

// fingerprint returns what two requests under one key must have in common to be the same request: method,
// path and query, the named header fields, and the body byte for byte.
func fingerprint(r *http.Request, headers []string, body []byte) []byte {
	h := sha256.New()
	addPart(h, r.Method)
	addPart(h, r.URL.RequestURI())
	for _, name := range headers {
		values := r.Header[name]
		addLen(h, len(values))
		for _, v := range values {
			addPart(h, v)
		}
	}
	h.Write(body)
	return h.Sum(nil)[:digestLen]
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
