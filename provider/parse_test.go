package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestCatalogueInYAML prints every specification and reads it again. Nothing may be lost on the way,
// or what somebody copies would be another specification.
func TestCatalogueInYAML(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			want, _ := Lookup(name)
			for i := range want.Verify {
				want.Verify[i].Scheme = nil // code has a name in YAML, but can not be copied
			}
			text, err := spec.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := spec.Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}
