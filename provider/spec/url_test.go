package spec

import (
	"strings"
	"testing"
)

// TestHandshakesThatNeedTheURL are refused without it: an answer computed from what a proxy calls the
// endpoint is wrong, and one computed from nothing as well.
func TestHandshakesThatNeedTheURL(t *testing.T) {
	s := plain()
	s.Handshakes = []Handshake{{Method: "GET", Echo: "query:c", Code: &ChallengeCode{Kind: PlainHash, Over: []Value{"echo", "url"}}}}
	build1(t, s, Settings{})
	build1(t, s, Settings{Handshakes: true, URL: "https://shop.example/in"})
	if _, err := New(s, Settings{Secrets: Secrets("fake"), Handshakes: true}); err == nil || !strings.Contains(err.Error(), "the URL") {
		t.Errorf("enabled without the URL: %v", err)
	}
	s.Handshakes[0].Code.Over = []Value{"echo"}
	build1(t, s, Settings{Handshakes: true})
}

func TestSpecificationsKnowWhetherTheySignTheURL(t *testing.T) {
	for _, c := range []struct {
		sign  []Value
		signs bool
	}{
		{[]Value{"body"}, false}, {[]Value{"query:a", "body"}, false}, {[]Value{"const:url", "body"}, false}, {[]Value{"method", "url", "body"}, true},
	} {
		s := plain()
		s.Verify = append(s.Verify, Verify{Sign: c.sign})
		if s.SignsURL() != c.signs {
			t.Errorf("%v: %v", c.sign, !c.signs)
		}
	}
}
