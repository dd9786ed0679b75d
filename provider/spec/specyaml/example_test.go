package specyaml_test

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/parser"

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

// A specification inside a larger document: the places are those of that document.
func ExampleParseNode() {
	file, err := parser.ParseBytes([]byte("\n\nname: acme\nverify: []\n"), 0)
	if err != nil {
		panic(err)
	}
	root := file.Docs[0].Body
	s, err := specyaml.ParseNode(root)
	if err == nil {
		err = specyaml.LocateNode(root, s.Validate())
	}
	fmt.Println(err)
	// Output: 4:9: verify: is missing: every request must be authenticated; if the sender signs nothing, put a token into the URL and verify that (kind: token, signature: {in: query:token})
}

// The same document, checked when it is known what it says.
func ExampleLocateNode() {
	file, err := parser.ParseBytes([]byte("name: acme\nverify: []\n"), 0)
	if err != nil {
		panic(err)
	}
	root := file.Docs[0].Body
	fmt.Println(specyaml.LocateNode(root, spec.Spec{Name: "acme"}.Validate()))
	// Output: 2:9: verify: is missing: every request must be authenticated; if the sender signs nothing, put a token into the URL and verify that (kind: token, signature: {in: query:token})
}

func ExampleFormatDuration() {
	fmt.Println(spec.FormatDuration(72*time.Hour), spec.FormatDuration(5*time.Minute), spec.FormatDuration(90*time.Second))
	// Output: 3d 5m 1m30s
}

// Two secrets while one replaces the other, and nothing of them in a log.
func ExampleSecrets() {
	secrets := spec.Secrets("whsec_new", "whsec_old")
	secrets[1].Until = time.Date(2026, 2, 4, 0, 0, 0, 0, time.UTC)
	fmt.Println(len(secrets), secrets[0])
	// Output: 2 {a secret}
}
