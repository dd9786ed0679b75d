package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// uncode takes out what names code, which can be shown, and not be copied.
func uncode(s *spec.Spec) {
	for i := range s.Verify {
		if v := &s.Verify[i]; v.Kind == spec.Code {
			v.Kind, v.Scheme = "", nil
		}
	}
	for i := range s.Handshakes {
		if h := &s.Handshakes[i]; h.Code != nil && h.Code.Kind == spec.Code {
			h.Code = nil
		}
	}
}

// TestCatalogueInYAML prints every specification and reads it again. Nothing may be lost on the way,
// or what somebody copies would be another specification.
func TestCatalogueInYAML(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			want, _ := Lookup(name)
			uncode(&want)
			text, err := specyaml.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := specyaml.Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}
