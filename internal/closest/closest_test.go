package closest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"github", "gitlab", "hash", "header", "stripe", "x"}
	for word, want := range map[string]string{
		"github": "github", "GitHub": "github", "gihtub": "github", "gitlba": "gitlab", "strpe": "stripe",
		"hsah": "hash", "has": "hash", "heder": "header", "q": "", "": "", "nobody": "", "striped-shirt": "", "X": "x",
	} {
		if got, ok := Word(word, known); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", word, got, ok, want)
		}
	}
	if got, _ := Word("git", []string{"gib", "gif"}); got != "gib" {
		t.Errorf("%q; of equally near ones the first is meant", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "abcd", 1}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
