package config

import "github.com/hookonce/hookonce/internal/closest"

// suggest ends a message about an unknown word: with the closest candidate, or with all of them.
func suggest(word string, candidates []string) string {
	if c, ok := closest.Word(word, candidates); ok {
		return `; did you mean "` + c + `"?`
	}
	return "; write " + oneOf(candidates)
}
