package spec

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"
)

// What stands in the place of a value is a number if it is one, and a string if not: the body is JSON whatever the id is.
func TestSampleIsJSON(t *testing.T) {
	s := Spec{Example: Template{Body: `{"a": {{id}}, "b\"": "{{id}} \" of {{type}}", "c": [{{object}},{{unix}}]}`, Type: "t"}}
	for id, want := range map[string]string{
		"738150001":  `{"a": 738150001, "b\"": "738150001 \" of t", "c": [738150001,7]}`,
		"-1":         `{"a": -1, "b\"": "-1 \" of t", "c": [-1,7]}`,
		"007":        `{"a": "007", "b\"": "007 \" of t", "c": ["007",7]}`,
		"1e9":        `{"a": "1e9", "b\"": "1e9 \" of t", "c": ["1e9",7]}`,
		"first":      `{"a": "first", "b\"": "first \" of t", "c": ["first",7]}`,
		`1, "b": "x`: `{"a": "1, \"b\": \"x", "b\"": "1, \"b\": \"x \" of t", "c": ["1, \"b\": \"x",7]}`,
		"":           `{"a": "", "b\"": " \" of t", "c": ["",7]}`,
	} {
		_, body := s.Sample(Sample{ID: id, Time: time.Unix(7, 0)})
		if string(body) != want || !json.Valid(body) {
			t.Errorf("%q\nmakes %s\nwant  %s", id, body, want)
		}
	}
}

func TestNumberedObject(t *testing.T) {
	for object, want := range map[string]string{
		"":                                       "",
		"pi_Example":                             "pi_0000012",
		"pi_1":                                   "pi_12",
		"93":                                     "12",
		"fda08377-0000-4000-8000-000000001001":   "fda08377-0000-4000-8000-000000000012",
		"{673a6070-0000-4000-8000-00000000b001}": "{673a6070-0000-4000-8000-000000000012}",
		"auth0|001":                              "auth0|012",
		"SM0001":                                 "SM0012",
		"EXAMPLE":                                "EXAMPLE12",
		"ZXhh=":                                  "ZXhh12=",
		"a_":                                     "a_12",
	} {
		if got := (Template{Object: object}).NumberedObject(12); got != want {
			t.Errorf("%q becomes %q, want %q", object, got, want)
		}
	}
}

// Numbers are made for senders whose identifiers are numbers, and for no others.
func TestNumberedID(t *testing.T) {
	for example, want := range map[string]string{"3816279340": "100000000000012", "1001": "100000000000012", "": "", "evt_1": "", "1a": "", "-1": ""} {
		if got := (Template{ID: example}).NumberedID(12); got != want {
			t.Errorf("%q: %q, want %q", example, got, want)
		}
	}
	if got := (Template{ID: "1"}).NumberedID(1<<64 - 1); len(got) != 15 {
		t.Errorf("the last one is %s", got)
	}
}

// An identifier that is made up is of the example's kind: same beginning, length and alphabet.
func TestNewID(t *testing.T) {
	for example, want := range map[string]string{
		"":                                             `^msg_[0-9A-Za-z]{27}$`,
		"evt_1NG8Du2eZvKYlo2CUI79vXWy":                 `^evt_[1-9][0-9A-Za-z]{23}$`,
		"evt_2d4a5b1c9f6e4f3a8b7c6d5e4f3a2b1c":         `^evt_[0-9a-f]{32}$`,
		"Ev08MFMKH6":                                   `^Ev[1-9][0-9A-Z]{7}$`,
		"EZ24806c8c31b14db3b8cdb5e2b3b4d5e6":           `^EZ[0-9a-f]{32}$`,
		"72d3162e-cc78-11e3-81ab-4c9367dc0958":         `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`,
		"{AAAAAAAA-0000-4000-8000-00000000000F}":       `^\{[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}\}$`,
		"notif_ccd8a4d0-f965-11e3-a367-c779cae3e1b3":   `^notif_[0-9a-f]{8}-[0-9a-f]{4}-4`,
		"evt_01hv8x29kz0t586xy6zn1a62ny":               `^evt_01[0-9a-hjkmnp-tv-z]{24}$`,
		"01FZ74A0TDDPYRVKNK77XKC3ZR":                   `^01[0-9A-HJKMNP-TV-Z]{24}$`,
		"3816279340":                                   `^[1-9][0-9]{9}$`,
		"rbtnWrG1DVDGGGFHFyun0A==":                     `^[0-9A-Za-z]{22}==$`,
		"WH-2WR32451HC0233532-67976317FL4543714":       `^WH-2WR32451HC0233532-[0-9A-Z]{17}$`,
		"wamid.HBgLMTY0NjcwNDM1OTUVAgASGBQzQTdCNTg5R=": `^wamid\.[0-9A-Za-z]{37}=$`,
		"8bnqjr": `^[0-9a-z]{6}$`,
		"prod":   `^[a-z]{4}$`,
		"a_":     `^a_$`,
	} {
		form, seen := regexp.MustCompile(want), map[string]bool{}
		for range 50 {
			id := Template{ID: example}.NewID()
			if !form.MatchString(id) {
				t.Fatalf("%q becomes %q, want %s", example, id, want)
			}
			seen[id] = true
		}
		if example != "a_" && len(seen) < 45 {
			t.Errorf("%q: %d different ones of 50", example, len(seen))
		}
	}
}
