package spec

import (
	"reflect"
	"strings"
)

// words are the words that a field of a type takes.
var words = map[reflect.Type][]string{
	reflect.TypeFor[Kind]():       list(HMAC, PlainHash, Ed25519, ECDSA, RSA, JWT, Token, Basic, Code),
	reflect.TypeFor[Hash]():       list(SHA1, SHA256, SHA512),
	reflect.TypeFor[KeyForm]():    list(KeyUTF8, KeyBase64, KeyHex, KeyWhsec, KeyWhpk, KeySHA1, KeyNFKD, KeyPEM, KeyJWK),
	reflect.TypeFor[Encoding]():   list(Hex, Base64, Base64URL),
	reflect.TypeFor[Unit]():       list(Seconds, Millis, RFC3339),
	reflect.TypeFor[Coverage]():   list(CoversBody, CoversFields, CoversNonce, CoversCRC32, CoversNothing),
	reflect.TypeFor[Repeat]():     list(Drop, KeepLatest, Coalesce, Off),
	reflect.TypeFor[Stability]():  list(Stable, Unstable, NotSent),
	reflect.TypeFor[TwinMode]():   list(Flag, DropTwin),
	reflect.TypeFor[Confidence](): list(Stated, Reported, NotSourced),
}

func list[T ~string](all ...T) []string {
	texts := make([]string, len(all))
	for i, word := range all {
		texts[i] = string(word)
	}
	return texts
}

// suggestion ends a message about an unknown word: with what was probably meant, or with all there are.
func suggestion(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, candidate := range known {
		if d := distance(strings.ToLower(word), candidate); d < least || d == least && best == "" {
			best, least = candidate, d
		}
	}
	if best != "" && least <= max(1, len(best)/3) {
		return `; did you mean "` + best + `"?`
	}
	return "; write one of " + strings.Join(known, ", ")
}

// distance is the number of letters to insert, delete, replace or swap with their neighbour to get
// from a to b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
