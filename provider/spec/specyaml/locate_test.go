package specyaml

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/provider/spec"
)

const faulty = `verify:
  - signature: {in: header:X-Signature}
    sign: [json:$.id]
  - kind: token
    signature:
      in: header:X-Token
    sign: [body]
event:
  key:
    - ["const:acme"]
    - ["json:$.id", "json:$.tenant"]
    - ["json:$.try"]
  attempt_id: ["json:$.try"]
dedup:
  stable_on_retry: no
  logical: [{key: ["json:$.order"], mode: drop}]
answer: {status: 302, reject: 200,
  not_ready: 400}
`

// TestValidateFindsAllFaults: and in the text that the specification was read from, where they are.
func TestValidateFindsAllFaults(t *testing.T) {
	s, err := Parse([]byte(faulty))
	if err != nil {
		t.Fatal(err)
	}
	var found spec.Faults
	err = s.Validate()
	if !errors.As(err, &found) || found[0].Error() != "name: is missing" {
		t.Fatalf("%v", err)
	}
	if !errors.As(Locate([]byte(faulty), err), &found) {
		t.Fatalf("%v", err)
	}
	want := []spec.Fault{
		{Line: 1, Column: 1, Field: "name"}, // what is missing is where the rest is
		{Line: 3, Column: 11, Field: "verify[0].sign"},
		{Line: 7, Column: 11, Field: "verify[1].sign"},
		{Line: 10, Column: 7, Field: "event.key[0]"},
		{Line: 12, Column: 7, Field: "event.key[2]"},
		{Line: 15, Column: 20, Field: "dedup.stable_on_retry"},
		{Line: 16, Column: 43, Field: "dedup.logical[0].mode"},
		{Line: 17, Column: 18, Field: "answer.status"},
		{Line: 17, Column: 31, Field: "answer.reject"},
		{Line: 18, Column: 14, Field: "answer.not_ready"},
	}
	for i := range found {
		found[i].Text = ""
	}
	if diff := cmp.Diff(want, []spec.Fault(found)); diff != "" {
		t.Error(diff)
	}
}

// TestLocateWhatCanNotBeCompiled: spec.New stops at the first of those, and names its field as well.
func TestLocateWhatCanNotBeCompiled(t *testing.T) {
	const text = `name: acme
verify:
  - signature: {in: header:X-Signature}
    sign: [body]
event:
  key: [[json:$.id]]
  time:
    - {in: json:$.at}
    - {in: item:$.at}
`
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = spec.New(s, spec.Settings{Secrets: spec.Secrets("fake")})
	if err == nil || !strings.HasPrefix(err.Error(), "provider acme: event.time[1]: ") {
		t.Errorf("%v", err)
	}
	if got := Locate([]byte(text), err); !strings.HasPrefix(got.Error(), "9:7: event.time[1]: ") {
		t.Errorf("%v", got)
	}
}

// TestLocateLeavesOthersAlone: what is no fault has no place, nor has anything in what is no specification.
func TestLocateLeavesOthersAlone(t *testing.T) {
	_, err := spec.New(spec.Spec{
		Name:   "plain",
		Verify: []spec.Verify{{Signature: spec.Signature{In: "header:X-Sig"}, Sign: []spec.Value{"body"}}},
		Event:  spec.Extract{Key: [][]spec.Value{{"json:$.id"}}},
	}, spec.Settings{})
	if got := Locate([]byte("name: a"), err); got != err {
		t.Errorf("%v became %v", err, got)
	}
	refused := spec.Spec{}.Validate()
	if got := Locate([]byte("{"), refused); refused == nil || got.Error() != refused.Error() {
		t.Errorf("%v became %v", refused, got)
	}
}
