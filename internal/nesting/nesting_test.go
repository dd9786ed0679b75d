package nesting

import (
	"strings"
	"testing"
)

func TestDeeper(t *testing.T) {
	deep := strings.Repeat("[", 4) + strings.Repeat("]", 4)
	for body, want := range map[string]bool{
		"": false, "[[[]]]": false, deep: true, `{"a":[{}]}`: false, `{"a":[{"b":[]}]}`: true,
		`["[[[[", "]"]`: false, `["\"[[[[" , [[[]]]]`: true, `["\\", [[[]]]]`: true,
		strings.Repeat("[],", 9): false, `["` + strings.Repeat(`{`, 9): false,
	} {
		if got := Deeper([]byte(body), 3); got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
}
