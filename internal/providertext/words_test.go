package providertext_test

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/hookonce/hookonce/internal/providertext"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

func TestWhere(t *testing.T) {
	for value, want := range map[spec.Value]string{
		"header:X-Id":                "the header X-Id",
		"json:$.data.id":             "data.id in the JSON body",
		"json:$.items[0].id":         "items[0].id in the JSON body",
		"json:$.note?":               "note in the JSON body (if it is there)",
		"json:$":                     "the JSON body",
		"json:$[*]":                  "each element of the JSON body",
		"json:$.events[*]":           "each element of events in the JSON body",
		"json:$.entry[*].changes[*]": "each element of entry.changes in the JSON body",
		"item:$.id":                  "id of each event in the batch",
		"item:$":                     "the event in the batch",
		"parent:$.time":              "time of what holds the events of the batch",
		"form:MessageSid":            "the field MessageSid of the form",
		"query:code":                 "the parameter code of the URL",
		"claim:iat":                  "the claim iat of the token",
		"hash:json:$.data":           "a digest of data in the JSON body",
		"hash:json:$":                "a digest of the JSON body",
		"hash:form:payload":          "a digest of the field payload of the form",
		"lower:query:data.id":        "the parameter data.id of the URL in lower case",
		"const:v0:":                  "the text v0:",
		"body":                       "the body",
		"url":                        "the URL",
		"sorted_form":                "every field of the form",
		"id":                         "the signed identifier",
		"header:X-Id?":               "the header X-Id (if it is there)",
		"hash:item:$":                "a digest of the event in the batch",
		"parent:$":                   "what holds the events of the batch",
		"part:t=":                    "the part t= of the signature header",
		"entry:0":                    "the entry 0 of the signature header",
		"ts":                         "the signed time",
		"method":                     "the method",
		"secret":                     "the secret",
		"form:Body?":                 "the field Body of the form (if it is there)",
		"header:X-Slack-Signature":   "the header X-Slack-Signature",
	} {
		if got := providertext.Where(value); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// TestWordsOfTheCatalogue fails where a text about a sender has the notation of specifications in it, or none at all where
// there must be one.
func TestWordsOfTheCatalogue(t *testing.T) {
	notation := regexp.MustCompile(`(^|[ (])(json|item|parent|hash|header|form|query|claim|part|entry|lower|const):|\$|\[\*\]|  |^ | $`)
	for _, name := range provider.Names() {
		known, err := provider.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		s := providertext.Of(known)
		for label, text := range map[string]string{
			"proof": s.Proof(), "key": s.Key(), "proven": s.Proven(), "retries": s.Retries(), "resends": s.Resends(),
			"parts": s.Parts(), "later": s.Later(),
		} {
			switch optional := label == "parts" || label == "later"; {
			case text == "" && !optional:
				t.Errorf("%s: nothing is said of %s", name, label)
			case notation.MatchString(text):
				t.Errorf("%s, %s: %q", name, label, text)
			}
		}
	}
}

// TestEveryKindHasWords walks the kinds that a way of signing may have.
func TestEveryKindHasWords(t *testing.T) {
	field, _ := reflect.TypeFor[spec.Verify]().FieldByName("Kind")
	for _, kind := range regexp.MustCompile(`[a-z0-9_]+`).FindAllString(field.Tag.Get("only"), -1) {
		s := providertext.Of(spec.Spec{Verify: []spec.Verify{{Kind: spec.Kind(kind)}}})
		if s.Proof() == "" {
			t.Errorf("%s has no words", kind)
		}
	}
}

func TestPlain(t *testing.T) {
	got := providertext.Plain("**no**: see [the `page`](custom.md#a) of `x`")
	if want := "no: see the page of x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
