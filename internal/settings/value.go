package settings

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
)

// Value parses and shows one setting. An error of Set is a sentence fragment for people: what is
// wrong and what to write instead. It repeats the text only where that cannot be a secret.
type Value interface {
	// Set parses a text and stores it where the value is kept.
	Set(text string) error
	// Show returns the value as a user writes it, secrets masked.
	Show() string
}

// List is a value that takes several texts, each with its own call of Set, which adds it.
type List interface {
	Value
	// Clear empties the list.
	Clear()
	// Items returns each element as a user writes it in YAML, secrets masked.
	Items() []string
	// Example returns one text that Set accepts, for messages.
	Example() string
}

// Pairs is a value that takes several texts, each under a key of its own: a group in the file whose
// keys are not settings.
type Pairs interface {
	List
	SetPair(key, text string) error
}

// Exact is a value that does not show all that counts.
type Exact interface {
	// Exact returns all of the value, to be compared. It may be a secret.
	Exact() string
}

// lone is a list that a single value may stand for in the file.
type lone interface {
	List
	lone()
}

// exactly returns all of a value, to be compared. It may be a secret.
func exactly(v Value) string {
	switch v := v.(type) {
	case Exact:
		return v.Exact()
	case List:
		return strings.Join(v.Items(), "\x00")
	}
	return v.Show()
}

// oneOf joins words for people: "a, b or c".
func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Suggest ends a message about an unknown word: with the closest candidate, or with all of them.
func Suggest(word string, candidates []string) string {
	if c, ok := closest.Word(word, candidates); ok {
		return `; did you mean "` + c + `"?`
	}
	return "; write " + oneOf(candidates)
}

// plainText is what YAML reads as itself without quotes.
var plainText = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9/._=?&+~-]*(:[A-Za-z0-9/._=?&+~-]+)*$`)

// quote returns a text as it stands in YAML: in quotes, unless it needs none.
func quote(s string) string {
	if plainText.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// QuotePair returns a key and its value as they stand in a group. A colon in a key needs quotes.
func QuotePair(key, text string) string {
	if strings.Contains(key, ":") {
		return strconv.Quote(key) + ": " + quote(text)
	}
	return quote(key) + ": " + quote(text)
}
