package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// timed is a sender whose signature has the time in it.
func timed() Spec {
	s := plain()
	s.Verify = []Verify{{
		Signature: Signature{In: "header:X-Signature", Split: ",", Prefix: "v1="},
		Time:      &Timestamp{In: "part:t=", Past: time.Minute},
		Sign:      []Value{"ts", "const:.", "body"},
	}}
	return s
}

// TestUnsafeSpecificationsAreRefused changes one thing at a time in a good specification.
func TestUnsafeSpecificationsAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Name = "" }, "name: is missing"},
		{func(s *Spec) { s.Verify = nil }, "every request must be authenticated"},
		{func(s *Spec) { s.Verify[0].Hash = "md5" }, "hash: there is no"},
		{func(s *Spec) { s.Verify[0].Encoding = "rot13" }, "encoding: there is no"},
		{func(s *Spec) { s.Verify[0].Key = "raw" }, `no form of key is called "raw"`},
		{func(s *Spec) { s.Verify[0].Signature.In = "" }, "signature.in"},
		{func(s *Spec) { s.Verify[0].Signature.In = "header:X-Sig?" }, "only the last part of a key"},
		{func(s *Spec) { s.Verify[0].Signature.Skip = -1 }, "signature.skip"},
		{func(s *Spec) { s.Verify[0].Signature.Trim = "vw" }, "signature.trim"},
		{func(s *Spec) { s.Verify[0].Unescape = "/" }, "unescape: is for the URL"},
		{func(s *Spec) { s.Verify[0].Unescape, s.Verify[0].Sign = "/\n", []Value{"ts", "url", "body"} }, "unescape: lists the characters"},
		{func(s *Spec) { s.Verify[0].Unescape, s.Verify[0].Sign = "é", []Value{"ts", "url", "body"} }, "unescape: lists the characters"},
		{func(s *Spec) { s.Verify = []Verify{{Kind: Token, Unescape: "/"}} }, "a token signs no URL"},
		{func(s *Spec) { s.Methods = []string{"POST", "PUT"} }, `methods: there is no event with "PUT"`},
		{func(s *Spec) { s.Methods = []string{"get", "POST"} }, `methods: there is no event with "get"`},
		{func(s *Spec) { s.Methods = []string{"GET"} }, "methods: lacks POST"},
		{func(s *Spec) { s.Methods = []string{"POST", "GET"} }, "methods: what a GET says is in its URL"},
		{func(s *Spec) {
			s.Methods, s.Verify[0].Sign, s.Form = []string{"POST", "GET"}, []Value{"ts", "method", "url", "body"}, "payload"
		}, "methods: a GET has no body"},
		{func(s *Spec) {
			s.Methods, s.Verify[0].Sign = []string{"POST", "GET"}, []Value{"ts", "url", "body"}
		}, "methods: a POST could be sent as a GET"},
		{func(s *Spec) {
			s.Methods, s.Verify[0].Sign = []string{"POST", "GET"}, []Value{"ts", "url", "body"}
			s.Verify = append(s.Verify, Verify{Kind: Token, Signature: Signature{In: "header:X-Token"}})
		}, "methods: what a GET says is in its URL"},
		{func(s *Spec) { s.Verify[0].Sign = []Value{"ts"} }, "does not contain body"},
		{func(s *Spec) { s.Verify[0].Sign = []Value{"body?"} }, "does not contain body"},
		{func(s *Spec) { s.Verify[0].Covers, s.Verify[0].Sign = CoversBody, []Value{"ts"} }, "covers: says body"},
		{func(s *Spec) { s.Verify[0].Sign = []Value{"body"} }, "protects nobody"},
		{func(s *Spec) { s.Verify[0].Time = nil }, "time does not say where"},
		{func(s *Spec) { s.Verify[0].Sign = []Value{"ts", "body", "id"} }, "sign and id"},
		{func(s *Spec) { s.Verify[0].ID = "header:X-Id" }, "sign and id"},
		{func(s *Spec) { s.Verify[0].Sign = append(s.Verify[0].Sign, "heder:X") }, "sign[3]"},
		{func(s *Spec) { s.Verify[0].Sign = append(s.Verify[0].Sign, "secret") }, "plain hash"},
		{func(s *Spec) { s.Verify[0].PerItem = true }, "per_item"},
		{func(s *Spec) {
			s.Verify[0].Kind, s.Verify[0].Sign, s.Form = PlainHash, []Value{"secret", "ts", "body"}, "payload"
		}, "anybody can append"},
		{func(s *Spec) { s.Verify[0].Time.In = "const:1" }, "time:"},
		{func(s *Spec) { s.Verify[0].Time.In = "claim:iat" }, "time of a token"},
		{func(s *Spec) { s.Verify[0].Time.Unit = "h" }, "unit: there is no"},
		{func(s *Spec) { s.Verify[0].Time.Past = -1 }, "negative"},
		{func(s *Spec) { s.Verify[0].Signature.Split = "" }, "needs signature.split"},
		{func(s *Spec) { s.Verify = []Verify{{Kind: Token, Covers: CoversBody}} }, "covers: says body, but a token"},
		{func(s *Spec) { s.Verify = []Verify{{Kind: Token, ID: "header:X-Id"}} }, "signs no identifier"},
		{func(s *Spec) { s.Verify = []Verify{{Kind: Token, Sign: []Value{"body"}}} }, "signs nothing"},
		{func(s *Spec) { s.Verify = []Verify{{Kind: "rot13"}} }, "sign: is missing"},
		{func(s *Spec) { s.Event.Key = [][]Value{{}} }, "event.key[0]"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"const:x"}} }, "the same for all events"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"json:$.id?"}} }, "needs a required part"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"json:$.a?", "json:$.b"}} }, "only the last part"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"body"}} }, "cannot be used here"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"id"}} }, "has no id"},
		{func(s *Spec) { s.Event.Key = [][]Value{slices.Repeat([]Value{"json:$.id"}, 9)} }, "at most 8 parts"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"item:$.id"}} }, "only where split"},
		{func(s *Spec) { s.Event.AttemptID = []Value{"json:$.id"} }, "identifies the attempt"},
		{func(s *Spec) { s.Event.Attempt = []Value{"json:$.id"} }, "identifies the attempt"},
		{func(s *Spec) { s.Event.AttemptID, s.Event.Key = []Value{"header:X-Try"}, [][]Value{{"header:x-try"}} }, "identifies the attempt"},
		{func(s *Spec) { s.Event.AttemptID, s.Event.Key = []Value{"json:$.try?"}, [][]Value{{"hash:json:$.try"}} }, "identifies the attempt"},
		{func(s *Spec) {
			s.Event.AttemptID, s.Event.Key = []Value{"header:X-Id"}, [][]Value{{"id"}}
			s.Verify[0].ID, s.Verify[0].Sign = "header:X-Id", []Value{"ts", "id", "body"}
		}, "identifies the attempt"},
		{func(s *Spec) { s.Split = &Split{Items: []Value{"json:$.events[*]"}} }, "the same for all items of a batch"},
		{func(s *Spec) {
			s.Split, s.Event.Key = &Split{Items: []Value{"json:$.events[*]"}}, [][]Value{{"parent:$.id", "item:$.id?"}}
		}, "the same for all items of a batch"},
		{func(s *Spec) { s.Event.Subscription = []Value{"json:$.id"} }, "same for all events"},
		{func(s *Spec) { s.Event.Tenant = []Value{"json:$.a?"} }, "event.tenant[0]"},
		{func(s *Spec) { s.Event.Time = []Moment{{In: "json:$.a", Unit: "h"}} }, "event.time[0]"},
		{func(s *Spec) { s.Dedup.OnRepeat = Off }, "remove one of them"},
		{func(s *Spec) { s.Dedup.Retry = Unstable }, "another in every retry"},
		{func(s *Spec) { s.Dedup.Logical = []Logical{{Key: []Value{"json:$.a"}, Mode: DropLogicalDuplicate}} }, "nobody opted into"},
		{func(s *Spec) { s.Handshakes = []Handshake{{Echo: "json:$.c"}} }, "every event would be taken"},
		{func(s *Spec) { s.Handshakes = []Handshake{{Method: "get", Echo: "query:c"}} }, "method"},
		{func(s *Spec) { s.Handshakes = []Handshake{{Method: "GET", Echo: "query:c", ContentType: "text/html"}} }, "content_type"},
		{func(s *Spec) {
			s.Handshakes = []Handshake{{Method: "GET", Echo: "query:c", Code: &ChallengeCode{Kind: HMAC}}}
		}, "pattern: is missing"},
		{func(s *Spec) { s.Limits.MaxBody = -1 }, "limits"},
		{func(s *Spec) { s.Answer.Status = 302 }, "answer.status"},
		{func(s *Spec) { s.Answer.Reject = 200 }, "answer.reject"},
		{func(s *Spec) { s.Answer.Reject = 500 }, "answer.reject"},
		{func(s *Spec) { s.Answer.NotReady = 400 }, "answer.not_ready"},
	} {
		s := timed()
		c.change(&s)
		if _, err := New(s, Settings{Secrets: Secrets("fake")}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	build1(t, timed(), Settings{})
}

func TestRetentionCoversTheWindow(t *testing.T) {
	s := timed()
	s.Limits = Limits{Retry: time.Hour, Manual: 3 * time.Hour}
	if got := s.Limits.Keep(); got != 6*time.Hour {
		t.Errorf("keys are kept for %v", got)
	}
}

func TestValuesThatAreNone(t *testing.T) {
	for _, text := range []Value{"", "x", "header", "header:", "header:?", "header:a b", "header:é", "json:", "json:$", "json:$.", "json:a",
		"json:$.a..b", "json:$.a.", "json:$.a[x]", "json:$.*", "const:", "part:", "body:x", "body?", "ts:", "form:", "entry:100", "hash:header:X"} {
		if v, err := parseValue(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}

// TestSecretsStayOutOfLogs formats and encodes everything that holds a secret.
func TestSecretsStayOutOfLogs(t *testing.T) {
	settings := Settings{Secrets: Secrets("hidden"), Token: "hidden", URL: "https://shop.example/in?token=hidden"}
	for _, v := range []any{settings, settings.Secrets, build1(t, plain(), settings)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "hidden") || strings.Contains(text, "68696464656e") {
				t.Errorf("%T with %s: %s", v, verb, text)
			}
		}
		if text, _ := json.Marshal(v); strings.Contains(string(text), "hidden") {
			t.Errorf("%T: %s", v, text)
		}
	}
	settings.URL = "/in?token=hidden"
	if _, err := New(plain(), settings); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}
