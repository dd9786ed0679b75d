package httpsig

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"fmt"
)

// Digest returns the text of the header Content-Digest for a body.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=" + item{kind: byteSequence, bytes: sum[:]}.String()
}

// CheckDigest compares the lines of the header Content-Digest with the body. Every sha-256 and sha-512 that they
// have must be that of the body, and one of them must be there; other digests are ignored.
func CheckDigest(lines []string, body []byte) error {
	digests, err := parseDictionary(lines)
	if err != nil {
		return fmt.Errorf("the header %s %w", DigestHeader, err)
	}
	known := 0
	for _, d := range digests {
		var want []byte
		switch d.name {
		case "sha-256":
			sum := sha256.Sum256(body)
			want = sum[:]
		case "sha-512":
			sum := sha512.Sum512(body)
			want = sum[:]
		default:
			continue
		}
		known++
		if d.list || d.kind != byteSequence || subtle.ConstantTimeCompare(d.bytes, want) == 0 {
			return fmt.Errorf("the %s in %s is not that of the body; check that the body is passed on byte for byte", d.name, DigestHeader)
		}
	}
	if known == 0 {
		return errors.New("the header " + DigestHeader + " has neither sha-256 nor sha-512")
	}
	return nil
}
