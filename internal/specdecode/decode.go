package specdecode

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/jose"
)

// Decode reads the specification that a node of a document is. Lines and columns are those of the document. Its errors are
// of type [spec.Faults].
func Decode(n ast.Node) (spec.Spec, error) {
	var s spec.Spec
	d := decoder{}
	d.decode(n, reflect.ValueOf(&s).Elem(), "")
	if len(d.faults) > 0 {
		return spec.Spec{}, d.faults
	}
	for i := range s.Verify {
		if v := s.Verify[i]; v.Kind == spec.JWT || v.Kind == spec.HTTPSignature && v.Key == spec.KeyJWK {
			s.Verify[i].Tokens = jose.Tokens{}
		}
	}
	return s, nil
}

// decoder fills a specification from the syntax tree of a document. It goes on after a fault, so that
// one reading finds them all.
type decoder struct{ faults spec.Faults }

var (
	durationType = reflect.TypeFor[time.Duration]()
	valueType    = reflect.TypeFor[spec.Value]()
	pathType     = reflect.TypeFor[spec.Path]()
)

func (d *decoder) fault(n ast.Node, field, format string, args ...any) {
	at := begin(n)
	d.faults = append(d.faults, spec.Fault{Line: at.Line, Column: at.Column, Field: field, Text: fmt.Sprintf(format, args...)})
}

// decode puts a node into a field.
func (d *decoder) decode(n ast.Node, into reflect.Value, field string) {
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.decode(n, into.Elem(), field)
	case reflect.Struct:
		d.group(n, into, field)
	case reflect.Map:
		d.table(n, into, field)
	case reflect.Slice:
		d.list(n, into, field)
	case reflect.Interface:
		d.fault(n, field, "code exists in the catalogue only; a specification cannot name it")
	default:
		if text, ok := scalar(n); ok {
			d.scalar(n, text, into, field)
			return
		}
		d.fault(n, field, "is %s; write a single value%s", form(n), quoteHint(n))
	}
}

// group decodes a mapping whose keys are the tags of a struct.
func (d *decoder) group(n ast.Node, into reflect.Value, field string) {
	pairs, ok := mapping(n)
	if !ok {
		d.fault(n, field, "is %s; write settings, one to a line: %s", form(n), strings.Join(tags(into.Type()), ", "))
		return
	}
	d.pairs(pairs, field, func(pair *ast.MappingValueNode, key, inner string) {
		for i := range into.NumField() {
			if f := into.Type().Field(i); tag(f) == key && key != notInYAML {
				d.decode(pair.Value, into.Field(i), inner)
				d.confine(pair.Value, into.Field(i), f.Tag.Get("only"), inner)
				return
			}
		}
		d.fault(pair.Key, field, "there is no %q here%s", key, suggestion(key, tags(into.Type())))
	})
}

// table decodes a mapping with free keys.
func (d *decoder) table(n ast.Node, into reflect.Value, field string) {
	pairs, ok := mapping(n)
	if !ok {
		d.fault(n, field, "is %s; write names and values, one pair to a line", form(n))
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	d.pairs(pairs, field, func(pair *ast.MappingValueNode, key, inner string) {
		text := reflect.New(into.Type().Elem()).Elem()
		d.decode(pair.Value, text, inner)
		into.SetMapIndex(reflect.ValueOf(key), text)
	})
}

// pairs calls do for each pair of a mapping with its key and its full name.
func (d *decoder) pairs(pairs []*ast.MappingValueNode, field string, do func(pair *ast.MappingValueNode, key, inner string)) {
	lines := map[string]int{}
	for _, pair := range pairs {
		key, ok := scalar(pair.Key)
		switch first := lines[key]; {
		case !ok:
			d.fault(pair.Key, field, "this cannot be a key; write a name")
			continue
		case first > 0:
			d.fault(pair.Key, field, "%q is set twice, first in line %d; keep one of them", key, first)
			continue
		}
		lines[key] = pair.Key.GetToken().Position.Line
		do(pair, key, strings.TrimPrefix(field+"."+key, "."))
	}
}

func (d *decoder) list(n ast.Node, into reflect.Value, field string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		example := ""
		if text, is := scalar(n); is && into.Type().Elem().Kind() == reflect.String {
			example = fmt.Sprintf(", as in [%q]", text)
		}
		d.fault(n, field, "is %s; write a list%s", form(n), example)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(seq.Values), len(seq.Values)))
	for i, element := range seq.Values {
		d.decode(element, into.Index(i), fmt.Sprintf("%s[%d]", field, i))
	}
}

// scalar decodes a single value.
func (d *decoder) scalar(n ast.Node, text string, into reflect.Value, field string) {
	var err error
	switch t := into.Type(); {
	case t == durationType:
		var length time.Duration
		if length, err = parseDuration(text); err != nil {
			err = fmt.Errorf("%q is not a duration; write it as in 30s, 5m, 36h or 3d", text)
		}
		into.SetInt(int64(length))
	case t.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			err = fmt.Errorf("%q is neither true nor false", text)
		}
		into.SetBool(text == "true")
	case t.Kind() == reflect.String:
		into.SetString(text)
		err = checkWord(t, text)
	default:
		var number int64
		if number, err = strconv.ParseInt(text, 10, t.Bits()); err != nil {
			err = fmt.Errorf("%q is not a whole number", text)
		}
		into.SetInt(number)
	}
	if err != nil {
		d.fault(n, field, "%v", err)
	}
}

// checkWord holds values to their forms and words to their lists.
func checkWord(t reflect.Type, text string) error {
	switch t {
	case valueType:
		return spec.Value(text).Check()
	case pathType:
		return spec.Path(text).Check()
	}
	known, limited := enums[t]
	if !limited {
		return nil
	}
	for _, word := range known {
		if word == text {
			return nil
		}
	}
	return fmt.Errorf("there is no %q%s", text, suggestion(text, known))
}

// confine holds a word to those of its kind that a field takes in YAML, where it takes not all of them.
func (d *decoder) confine(n ast.Node, word reflect.Value, only, field string) {
	if only == "" || checkWord(word.Type(), word.String()) != nil {
		return
	}
	if taken := strings.Split(only, ","); !slices.Contains(taken, word.String()) {
		d.fault(n, field, "%q cannot be written here%s", word, suggestion(word.String(), taken))
	}
}

// scalar returns the text of a single value.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	case *ast.MappingNode:
		if len(n.Values) == 1 && !n.IsFlowStyle {
			return rejoined(n.Values[0])
		}
	}
	return "", false
}

// rejoined returns the text of a value with a colon inside that the YAML library takes for a pair. It
// does so in lists inside of braces, although nothing but a colon with a space after it makes a pair.
func rejoined(n *ast.MappingValueNode) (string, bool) {
	key, plain := n.Key.(*ast.StringNode)
	value, ok := scalar(n.Value)
	if !plain || !ok || key.Token.Type != token.StringType {
		return "", false
	}
	from, to := key.Token.Position, begin(n.Value)
	adjacent := from.Line == to.Line && from.Column+utf8.RuneCountInString(key.Value)+1 == to.Column
	return key.Value + ":" + value, adjacent
}

// begin returns where a node begins. The library's own place of a pair is its colon.
func begin(n ast.Node) *token.Position {
	if pairs, ok := mapping(n); ok && len(pairs) > 0 && n.GetToken().Type == token.MappingValueType {
		return begin(pairs[0].Key)
	}
	return n.GetToken().Position
}

// mapping returns the pairs of a mapping.
func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// form names what a node is, for messages.
func form(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a group of settings"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "empty"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "an anchor, an alias, a tag or a merge, which are not read here"
	}
	return "a single value"
}

// quoteHint says what to do about a text that YAML takes for a group because of its colon.
func quoteHint(n ast.Node) string {
	if _, ok := mapping(n); ok {
		return `; a text that ends in a colon or has one before a space is put in quotes, as in "const:v0:"`
	}
	return ""
}

// notInYAML is the tag of a field that only a program can set.
const notInYAML = "-"

// tag returns the name of a field in YAML.
func tag(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func tags(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := tag(t.Field(i)); name != notInYAML {
			names = append(names, name)
		}
	}
	return names
}
