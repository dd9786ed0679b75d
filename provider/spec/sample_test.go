package spec

import "testing"

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
