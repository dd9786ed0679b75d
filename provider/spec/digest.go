package spec

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// digestSize is how many bytes of the SHA-256 identify the content of an event.
const digestSize = 16

// digestOf returns the digest of a whole body or item.
func digestOf(content []byte) []byte {
	sum := sha256.Sum256(content)
	return append([]byte(nil), sum[:digestSize]...)
}

// digester hashes parts of a document.
type digester struct {
	hash.Hash
	frame [8]byte
	sum   []byte
}

func newDigester() any { return &digester{Hash: sha256.New()} }

// digest returns the digest of the content that is equal in every copy of the event: of the parts
// that the specification names, or of the whole if it names none, if none of them is there, or if one
// of them is ambiguous.
func (p *Provider) digest(r *reading) []byte {
	present := 0
	for i := range p.extract.same {
		f := r.part(&p.extract.same[i])
		if f.ambiguous {
			return r.wholeDigest()
		}
		if f.found {
			present++
		}
	}
	if present == 0 {
		return r.wholeDigest()
	}
	d := p.digesters.Get().(*digester)
	defer p.digesters.Put(d)
	d.Reset()
	for i := range p.extract.same {
		d.add(r.part(&p.extract.same[i]))
	}
	d.sum = d.Sum(d.sum[:0])
	return append([]byte(nil), d.sum[:digestSize]...)
}

// wholeDigest is that of the item the reading is at, or of the body.
func (r *reading) wholeDigest() []byte {
	if r.itemText != "" {
		return digestOf(bytesOf(r.itemText))
	}
	return digestOf(r.req.Body)
}

// part returns the field that belongs to a value. Values that are not JSON count by their text.
func (r *reading) part(v *value) field {
	if v.path == nil {
		text := r.get(v)
		return field{found: text != "", raw: text}
	}
	if doc := r.in(v); v.node < len(doc) {
		return doc[v.node]
	}
	return field{}
}

// add hashes the length of the field's JSON text, zero if it is not there, and the text.
func (d *digester) add(f field) {
	binary.BigEndian.PutUint64(d.frame[:], uint64(len(f.raw)))
	d.Write(d.frame[:])
	d.Write(bytesOf(f.raw))
}
