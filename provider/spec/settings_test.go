package spec

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
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

// TestTheQueryOfTheRegisteredURL is the beginning of the one that is called. Otherwise what follows the
// URL in the signed text could be moved into it.
func TestTheQueryOfTheRegisteredURL(t *testing.T) {
	p := build1(t, signing("", "url", "body"), Settings{URL: "https://shop.example/in?k=v"})
	for query, moved := range map[string]string{"": "", "?k=v": "", "?k=v&a=1": "&a=1"} {
		req := signedAs(macOver(t, "https://shop.example/in?k=v"+moved+`{"id":"1"}`), `{"id":"1"}`)
		req.URL = "http://10.0.0.1/in" + query
		if _, err := p.Open(req); err != nil {
			t.Errorf("%q: %v", query, err)
		}
	}
	genuine := macOver(t, `https://shop.example/in?k=v{"id":"1","n":7}`)
	for query, body := range map[string]string{
		`?k=v{"id":"1","n":`: `7}`,                  // moved into the query
		`?k=`:                `v{"id":"1","n":7}`,   // moved out of it
		`?`:                  `k=v{"id":"1","n":7}`, // all of it
		`?k=w`:               `{"id":"1","n":7}`,    // exchanged
		`?a=1&k=v`:           `{"id":"1","n":7}`,
	} {
		req := signedAs(genuine, body)
		req.URL = "https://shop.example/in" + query
		rejected(t, p, req, hookonce.ReasonSignatureMismatch)
	}
	// With a separator nothing is moved. What was sent to another URL is still not for this one, not even where that only
	// goes on.
	p = build1(t, signing("|", "url", "body"), Settings{URL: "https://shop.example/in?k=v"})
	for query, ok := range map[string]bool{"?k=v": true, "?k=v&a=1": true, "?k=v2": false, "?k=v%26a=1": false, "?k=": false, "?a=1&k=v": false} {
		req := signedAs(macOver(t, "https://shop.example/in"+query+`|{"id":"1"}`), `{"id":"1"}`)
		req.URL = "https://shop.example/in" + query
		if _, err := p.Open(req); (err == nil) != ok {
			t.Errorf("signed for and sent to %s: %v", query, err)
		}
	}
}
