package spec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
)

// keyRule is one rule for the key.
type keyRule struct {
	parts  []value
	origin string
	signed bool
	inBody bool // a part of it is in the body
}

// KeyRules returns the rules of Event.Key in which the identifier that is signed, "id", is named by its
// header, that of the first way of signing. It is for listings; for an event there is
// [hookonce.Event.KeyOrigin].
func (s Spec) KeyRules() [][]Value {
	rules := make([][]Value, len(s.Event.Key))
	for i, rule := range s.Event.Key {
		rules[i] = slices.Clone(rule)
		for j, part := range rule {
			if part == "id" && len(s.Verify) > 0 && s.Verify[0].ID != "" {
				rules[i][j] = s.Verify[0].ID
			}
		}
	}
	return rules
}

// read returns the key, empty if a required part is absent, ambiguous or blank.
func (k *keyRule) read(r *reading) string {
	var room [8]string
	parts := room[:0]
	for i := range k.parts {
		text := r.get(&k.parts[i])
		switch {
		case strings.TrimSpace(text) != "":
			parts = append(parts, text)
		case !k.parts[i].optional || r.unusable(&k.parts[i]):
			return ""
		}
	}
	if len(k.parts) == 1 && !looksJoined(parts[0]) {
		return hookonce.NormalKey(strings.Clone(parts[0]))
	}
	return hookonce.NormalKey(joined(parts))
}

// joined is [hookonce.JoinKey], but a part that lacks its optional companion has its length in front
// as well: as it is, it could be spelt like the two of them.
func joined(parts []string) string {
	if len(parts) == 1 {
		return strconv.Itoa(len(parts[0])) + ":" + parts[0]
	}
	return hookonce.JoinKey(parts...)
}

// looksJoined reports whether a text could be taken for joined parts: digits and a colon. Then it gets
// its length in front as well, so that no two rules of a sender make the same key of different ids.
func looksJoined(text string) bool {
	digits := strings.TrimLeft(text, "0123456789")
	return len(digits) < len(text) && strings.HasPrefix(digits, ":")
}
