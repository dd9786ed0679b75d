package spec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// PassedHeaders returns which headers of the sender's requests the gateway keeps with an event and passes on: those that the
// specification verifies or extracts something by, those in [Spec.Headers], and those that every sender sets.
func (p *Provider) PassedHeaders() *header.Rule {
	s := header.Spec{Once: p.spec.headersRead(), Listed: p.spec.Headers, Secret: p.profile.SecretHeaders}
	for _, v := range p.spec.Verify {
		if name, ok := strings.CutPrefix(string(v.Signature.In), "header:"); ok && v.Signature.Repeated {
			s.Repeated = append(s.Repeated, name)
		}
	}
	return header.NewRule(s)
}

// headersRead returns the canonical names of the headers that anything in the specification names, sorted. One with numbers
// is there with each of them.
func (s Spec) headersRead() []string {
	var names []string
	eachValue(reflect.ValueOf(s), func(text Value) {
		v, err := parseValue(text)
		if err != nil || v.kind != kindHeader {
			return // New reports what cannot be parsed
		}
		base, numbered := strings.CutSuffix(v.text, "*")
		if !numbered {
			names = append(names, v.text)
			return
		}
		for n := range maxNumbered {
			names = append(names, base+strconv.Itoa(n+1))
		}
	})
	for _, v := range s.Verify {
		if v.Kind == HTTPSignature {
			names = append(names, httpHeaders...)
		}
		if by, ok := v.Scheme.(Imitator); ok {
			if carrier, err := parseValue(by.Carrier()); err == nil && carrier.kind == kindHeader {
				names = append(names, carrier.text)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// eachValue calls do with every [Value] in a specification.
func eachValue(in reflect.Value, do func(Value)) {
	switch in.Kind() {
	case reflect.Pointer:
		if !in.IsNil() {
			eachValue(in.Elem(), do)
		}
	case reflect.Struct:
		for i := range in.NumField() {
			eachValue(in.Field(i), do)
		}
	case reflect.Slice:
		for i := range in.Len() {
			eachValue(in.Index(i), do)
		}
	case reflect.String:
		if in.Type() == reflect.TypeFor[Value]() {
			do(Value(in.String()))
		}
	}
}
