package hookonce

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// parseKey returns the key that the lines of the header field Idempotency-Key name: a string of RFC 9651,
// whose parameters count for nothing, or, unless strict, the same text without its quotes. The error's
// text is for the client.
func parseKey(lines []string, strict bool, most int) (string, error) {
	if len(lines) != 1 {
		return "", fmt.Errorf("it is there %d times", len(lines))
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

// isBareKey reports whether text can be a key without quotes. What separates fields, or parameters, or is
// escaped in a string, cannot: it would have to be guessed what the client meant.
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
