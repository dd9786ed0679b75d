package specdecode

import (
	"reflect"
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
	"github.com/hookonce/hookonce/provider/spec"
)

// enums are the words that a field of a type takes.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[spec.Kind]():                 list(spec.HMAC, spec.PlainHash, spec.Ed25519, spec.ECDSA, spec.RSA, spec.JWT, spec.HTTPSignature, spec.Token, spec.Basic, spec.Code),
	reflect.TypeFor[spec.Hash]():                 list(spec.SHA1, spec.SHA256, spec.SHA512),
	reflect.TypeFor[spec.KeyForm]():              list(spec.KeyUTF8, spec.KeyBase64, spec.KeyHex, spec.KeyWhsec, spec.KeyWhsecOnly, spec.KeyWhpk, spec.KeySHA1, spec.KeyNFKD, spec.KeyPEM, spec.KeyJWK),
	reflect.TypeFor[spec.Encoding]():             list(spec.Hex, spec.Base64, spec.Base64URL),
	reflect.TypeFor[spec.Unit]():                 list(spec.Seconds, spec.Millis, spec.RFC3339),
	reflect.TypeFor[spec.Coverage]():             list(spec.CoversBody, spec.CoversFields, spec.CoversNonce, spec.CoversCRC32, spec.CoversNothing),
	reflect.TypeFor[spec.Repeat]():               list(spec.Drop, spec.KeepLatest, spec.Coalesce, spec.Off),
	reflect.TypeFor[spec.Stability]():            list(spec.Stable, spec.Unstable, spec.NotSent),
	reflect.TypeFor[spec.LogicalDuplicateMode](): list(spec.Flag, spec.DropLogicalDuplicate),
	reflect.TypeFor[spec.AuthKind]():             list(spec.AuthBearer, spec.AuthBasic, spec.AuthHeader, spec.AuthOAuth),
	reflect.TypeFor[spec.PageKind]():             list(spec.PageCursor, spec.PageLastID, spec.PageLink, spec.PageURL, spec.PageNumber, spec.PageOffset),
	reflect.TypeFor[spec.Sort]():                 list(spec.Newest, spec.Oldest),
	reflect.TypeFor[spec.Confidence]():           list(spec.Stated, spec.Reported, spec.NotSourced),
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
