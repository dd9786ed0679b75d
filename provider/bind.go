package provider

import (
	"errors"
	"fmt"
	"strings"
)

// maxKeyParts is how many parts a key may have.
const maxKeyParts = 8

// keyRules compiles the rules for the key, for events that were verified by v.
func (t *tree) keyRules(rules [][]Value, v *verifier) ([]keyRule, error) {
	var out []keyRule
	for i, rule := range rules {
		compiled, err := t.keyRule(rule, v)
		if err != nil {
			return nil, within(fmt.Sprintf("Event.Key[%d]", i), err)
		}
		out = append(out, compiled)
	}
	return out, nil
}

func (t *tree) keyRule(rule []Value, v *verifier) (keyRule, error) {
	if len(rule) > maxKeyParts {
		return keyRule{}, fmt.Errorf("a key has at most %d parts", maxKeyParts)
	}
	out := keyRule{signed: true}
	var origins []string
	distinguishes := false
	for i, text := range rule {
		part, err := t.keyPart(text, i == len(rule)-1)
		if err != nil {
			return keyRule{}, err
		}
		if part.kind == kindID {
			if v.id == nil {
				return keyRule{}, errors.New("id is used, but a way of signing has no ID")
			}
			part.origin = v.id.origin
		}
		out.parts = append(out.parts, part)
		out.signed = out.signed && part.kind != kindHeader
		distinguishes = distinguishes || part.kind != kindConst && !part.optional
		origins = append(origins, part.origin)
	}
	if !distinguishes {
		return keyRule{}, errors.New("a key needs a required part that differs between events, or all events are taken for one")
	}
	out.origin = strings.Join(origins, " + ")
	return out, nil
}

// keyPart compiles one part of a key.
func (t *tree) keyPart(text Value, last bool) (value, error) {
	part, err := parseValue(text)
	if err != nil {
		return part, err
	}
	switch part.kind {
	case kindHeader, kindJSON, kindConst, kindID:
	default:
		return part, fmt.Errorf("%q can not be part of a key", text)
	}
	if part.optional && !last {
		return part, fmt.Errorf("%q: only the last part of a key can be optional", text)
	}
	t.bind(&part)
	return part, nil
}

// extractor compiles what is taken from an event besides its key.
func (t *tree) extractor(spec Spec) (extractor, error) {
	var x extractor
	fields := []struct {
		name string
		from []Value
		to   *[]value
	}{
		{"Event.Delivery", spec.Event.Delivery, &x.delivery},
		{"Event.Type", spec.Event.Type, &x.kind},
		{"Event.Action", spec.Event.Action, &x.action},
		{"Event.Resource", spec.Event.Resource, &x.resource},
		{"Event.Tenant", spec.Event.Tenant, &x.tenant},
	}
	for _, f := range fields {
		for i, text := range f.from {
			v, err := t.fact(text, kindHeader, kindJSON, kindConst)
			if err != nil {
				return x, within(fmt.Sprintf("%s[%d]", f.name, i), err)
			}
			*f.to = append(*f.to, v)
		}
	}
	for i, m := range spec.Event.Time {
		v, err := t.fact(m.In, kindHeader, kindJSON, kindTS)
		if err == nil && !m.Unit.valid() {
			err = fmt.Errorf("there is no unit %q; use s, ms or rfc3339", m.Unit)
		}
		if err != nil {
			return x, within(fmt.Sprintf("Event.Time[%d]", i), err)
		}
		x.time = append(x.time, moment{v, m.Unit})
	}
	for i, text := range spec.Same {
		v, err := t.fact(text, kindJSON)
		if err != nil {
			return x, within(fmt.Sprintf("Same[%d]", i), err)
		}
		x.same = append(x.same, v)
	}
	return x, nil
}

// handshakes compiles the handshakes.
func (t *tree) handshakes(specs []Handshake) ([]handshake, error) {
	var out []handshake
	for i, s := range specs {
		field := fmt.Sprintf("Handshakes[%d]", i)
		when, err := t.fact(s.When, kindHeader, kindJSON)
		if err != nil {
			return nil, within(field+".When", err)
		}
		echo, err := t.fact(s.Echo, kindHeader, kindJSON)
		if err != nil {
			return nil, within(field+".Echo", err)
		}
		if s.Is == "" {
			return nil, within(field+".Is", errors.New("is empty: every request without the value would be a handshake"))
		}
		out = append(out, handshake{when, s.Is, echo})
	}
	return out, nil
}

// fact compiles a value of one of the given kinds.
func (t *tree) fact(text Value, kinds ...kind) (value, error) {
	v, err := parseAs(text, kinds...)
	if err != nil {
		return v, err
	}
	t.bind(&v)
	return v, nil
}
