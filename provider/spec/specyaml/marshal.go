package specyaml

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/hookonce/hookonce/provider/spec"
)

// Marshal returns a specification in YAML, to copy and change. [Parse] reads it, unless it needs code
// of the catalogue.
func Marshal(s spec.Spec) ([]byte, error) {
	text, err := marshal(s, blocks(s))
	if err != nil {
		return nil, fmt.Errorf("the specification %s has no form in YAML: %w", s.Name, err)
	}
	return text, nil
}

func marshal(s spec.Spec, blocks bool) ([]byte, error) {
	return yaml.MarshalWithOptions(s,
		yaml.UseLiteralStyleIfMultiline(blocks),
		yaml.IndentSequence(true),
		yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) { return []byte(spec.FormatDuration(d)), nil }),
	)
}

// blocks reports whether texts of several lines can be written as such. White space around their lines
// would be lost.
func blocks(s spec.Spec) bool {
	s = uncoded(s)
	block, err := marshal(s, true)
	if err != nil {
		return false
	}
	again, err := Parse(block)
	if err != nil {
		return false
	}
	want, _ := marshal(s, false)
	got, err := marshal(again, false)
	return err == nil && bytes.Equal(want, got)
}

// uncoded returns a copy without what names code of the catalogue.
func uncoded(s spec.Spec) spec.Spec {
	s.Verify, s.Handshakes = slices.Clone(s.Verify), slices.Clone(s.Handshakes)
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
	return s
}
