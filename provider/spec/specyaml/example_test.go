package specyaml_test

import (
	"fmt"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// A specification as text, to read or to copy and change.
func ExampleMarshal() {
	text, err := specyaml.Marshal(spec.Spec{
		Name: "acme",
		Verify: []spec.Verify{{
			Signature: spec.Signature{In: "header:X-Acme-Signature", Prefix: "sha256="},
			Sign:      []spec.Value{"body"},
		}},
		Event:  spec.Extract{Key: [][]spec.Value{{"json:$.id"}}},
		Limits: spec.Limits{Retry: 72 * time.Hour},
	})
	fmt.Print(string(text))
	fmt.Println(err)
	// Output:
	// name: acme
	// verify:
	//   - signature:
	//       in: header:X-Acme-Signature
	//       prefix: sha256=
	//     sign: [body]
	// event:
	//   key: [["json:$.id"]]
	// limits:
	//   retry: 3d
	// <nil>
}

// A sender that is described in a file.
func ExampleParse() {
	acme, err := specyaml.Parse([]byte(`
name: acme
verify:
  - signature: {in: "header:X-Acme-Signature", prefix: "sha256="}
    sign: [body]
event:
  key: [["json:$.id"]]
`))
	if err != nil {
		panic(err)
	}
	p, err := spec.New(acme, spec.Settings{Secrets: spec.Secrets("fake-secret-of-acme")})
	fmt.Println(p.Name(), err)
	// Output: acme <nil>
}

// What is wrong with a specification, and where in the text that is.
func ExampleLocate() {
	text := []byte("name: acme\nverify: []\n")
	s, err := specyaml.Parse(text)
	if err == nil {
		err = specyaml.Locate(text, s.Validate())
	}
	fmt.Println(err)
	// Output: 2:9: verify: is missing: every request must be authenticated; if the sender signs nothing, put a token into the URL and verify that (kind: token, signature: {in: query:token})
}
