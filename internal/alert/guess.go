package alert

import (
	"fmt"

	"github.com/hookonce/hookonce/internal/closest"
)

// Guess ends a sentence about a rule, an alert or a channel that there is none of: with what the name was meant for, or with what
// lists those that are known.
func Guess(name string, known []string) string {
	if meant, ok := closest.Word(name, known); ok {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return "; hookonce alerts lists them"
}
