package spec

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestLabelsAreBounded: what stands for a character that no header carries is longer than the character.
func TestLabelsAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"tabs": strings.Repeat("\t", 1000), "not UTF-8": strings.Repeat("a\xff", 1000), "controls of two bytes": strings.Repeat("\u0085", 1000),
		"long characters": strings.Repeat("\U0001F512", 1000), "as long as it may be": strings.Repeat("\t", maxLabel), "plain": strings.Repeat("a", 1000),
	} {
		if got := label(text); len(got) > maxLabel || len(got) < maxLabel-utf8.UTFMax || !utf8.ValidString(got) || strings.ContainsAny(got, "\t\u0085") {
			t.Errorf("%s: %d bytes, %q", name, len(got), got)
		}
	}
}
