package dynamofake

import (
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"strings"
)

// value is one value of an attribute as the wire has it: its type, and what it is.
type value map[string]json.RawMessage

// values are attributes by name.
type values map[string]value

func (v value) kind() string {
	for kind := range v {
		return kind
	}
	return ""
}

// text is what is under S, N or B.
func (v value) text() string {
	var s string
	_ = json.Unmarshal(v[v.kind()], &s)
	return s
}

// binary is what is under B, as the bytes that it stands for.
func (v value) binary() string {
	var b []byte
	_ = json.Unmarshal(v["B"], &b)
	return string(b)
}

func (v value) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(v.text())
	if v.kind() != "N" || !ok {
		return nil
	}
	return r
}

func numberOf(r *big.Rat) value {
	text := r.RatString()
	if !r.IsInt() {
		text = r.FloatString(38)
	}
	raw, _ := json.Marshal(text)
	return value{"N": raw}
}

// equal compares as the service does: type and content.
func (v value) equal(w value) bool {
	if v.kind() != w.kind() {
		return false
	}
	if a, b := v.rat(), w.rat(); a != nil && b != nil {
		return a.Cmp(b) == 0
	}
	var a, b any
	return json.Unmarshal(v[v.kind()], &a) == nil && json.Unmarshal(w[w.kind()], &b) == nil && reflect.DeepEqual(a, b)
}

// compare orders two values of one type; ok is false if they have no order.
func (v value) compare(w value) (order int, ok bool) {
	if v.kind() != w.kind() {
		return 0, false
	}
	switch v.kind() {
	case "N":
		a, b := v.rat(), w.rat()
		if a == nil || b == nil {
			return 0, false
		}
		return a.Cmp(b), true
	case "S":
		return strings.Compare(v.text(), w.text()), true
	case "B":
		return strings.Compare(v.binary(), w.binary()), true
	}
	return 0, false
}

// valid returns an error if a value cannot be stored.
func (v value) valid() *failure {
	if len(v) != 1 {
		return invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	switch v.kind() {
	case "S", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS":
	case "N":
		if v.rat() == nil {
			return invalid("The parameter cannot be converted to a numeric value: %s", v.text())
		}
	default:
		return invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	}
	return nil
}

// keyOf returns the value of the table's key among the attributes.
func (t *table) keyOf(attributes values, alone bool) (string, *failure) {
	v, there := attributes[t.key]
	if !there || alone && len(attributes) != 1 {
		return "", invalid("The provided key element does not match the schema")
	}
	if v.kind() != "S" {
		return "", invalid("The provided key element does not match the schema")
	}
	key := v.text()
	if key == "" {
		return "", invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", t.key)
	}
	return key, nil
}

const (
	maxItem        = 400 << 10
	maxTransaction = 4 << 20
	maxItems       = 100
)

// size is how large the attributes are, as far as the wire's form shows it.
func (a values) size() (n int) {
	for name, v := range a {
		n += len(name)
		switch v.kind() {
		case "S":
			n += len(v.text())
		case "B":
			n += len(v.text()) / 4 * 3
		case "N":
			n += (len(v.text())+1)/2 + 1
		default:
			n += len(v[v.kind()])
		}
	}
	return n
}

func (a values) clone() values {
	if a == nil {
		return nil
	}
	return maps.Clone(a)
}
