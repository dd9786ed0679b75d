// Package rendezvous says which of several weighted nodes owns a key, by rendezvous hashing: the same everywhere, with nothing
// to agree on but the nodes. A node that is added, removed or weighted anew moves only the keys that it gains or loses.
//
// The method never changes, because a change would move keys; the vectors in its tests hold it. All of it is integers, so
// that no processor, compiler or library of logarithms can come to another result:
//
//	D    = SHA-256 of every part of the key, each preceded by its length (8 bytes, most significant first)
//	h(n) = the first 8 bytes, as a number, of SHA-256(D, length of the node's name in 8 bytes, name)
//	L(n) = -log2((h+1) / 2^64), cut to 48 bits behind the point: see cost
//
// The owner is the node with the least L/weight, compared as L(a)·weight(b) < L(b)·weight(a) in 128 bits; of equal ones that
// with the larger h, then that whose name comes first. L is exponentially distributed, so a node owns its weight's share.
package rendezvous

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Node is one that keys can belong to. One with a weight of 0 owns none.
type Node struct {
	Name   string
	Weight uint32
}

// Owner returns the index of the node that a key of these parts belongs to, and -1 if no node has a weight. Names are
// distinct.
func Owner(nodes []Node, parts ...string) int {
	digest := keyDigest(parts)
	best := -1
	var owner score
	for i := range nodes {
		if nodes[i].Weight == 0 {
			continue
		}
		if s := scoreOf(&nodes[i], &digest); best < 0 || s.before(&owner) {
			best, owner = i, s
		}
	}
	return best
}

// keyDigest tells keys apart: ("ab", "c") is another one than ("a", "bc").
func keyDigest(parts []string) (d [sha256.Size]byte) {
	buf := make([]byte, 0, 256)
	for _, p := range parts {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(p)))
		buf = append(buf, p...)
	}
	return sha256.Sum256(buf)
}

// score is how a node stands in the competition for a key. The logarithm is taken only where weights differ.
type score struct {
	*Node
	h    uint64
	l    uint64
	hasL bool
}

func scoreOf(n *Node, key *[sha256.Size]byte) score {
	buf := make([]byte, 0, 128)
	buf = append(buf, key[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(n.Name)))
	buf = append(buf, n.Name...)
	d := sha256.Sum256(buf)
	return score{Node: n, h: binary.BigEndian.Uint64(d[:])}
}

// before reports whether a wins against b. Of equal weights the larger h wins: L never grows with h.
func (a *score) before(b *score) bool {
	if a.Weight != b.Weight {
		ahi, alo := bits.Mul64(a.cost(), uint64(b.Weight))
		bhi, blo := bits.Mul64(b.cost(), uint64(a.Weight))
		if ahi != bhi || alo != blo {
			return ahi < bhi || ahi == bhi && alo < blo
		}
	}
	if a.h != b.h {
		return a.h > b.h
	}
	return a.Name < b.Name
}

// cost is L, taken once.
func (a *score) cost() uint64 {
	if !a.hasL {
		a.l, a.hasL = cost(a.h), true
	}
	return a.l
}

// fraction is how many bits of a logarithm stand behind the point.
const fraction = 48

// cost returns -log2((h+1) / 2^64) in units of 2^-48. The bits of the logarithm come one by one from squaring the mantissa,
// of which each square keeps its upper 64 bits: a fixed rule, not a nearest value.
func cost(h uint64) uint64 {
	x := h + 1
	if x == 0 {
		return 0
	}
	zeros := bits.LeadingZeros64(x)
	m := x << zeros // m / 2^63 is in [1, 2)
	var f uint64
	for range fraction {
		hi, lo := bits.Mul64(m, m)
		f <<= 1
		if hi>>63 == 1 {
			f, m = f|1, hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return uint64(zeros+1)<<fraction - f
}
