package spec

import (
	"reflect"
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
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
	if meant, ok := closest.Word(word, known); ok {
		return `; did you mean "` + meant + `"?`
	}
	return "; write one of " + strings.Join(known, ", ")
}
