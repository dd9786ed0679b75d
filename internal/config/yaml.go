package config

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile bounds the file, so that something else given by mistake is refused at once.
const maxFile = 1 << 20

// node is a value in the file, with its place. Exactly one of its forms is set; none of them for a
// null or an empty value.
type node struct {
	at      place
	scalar  *string
	list    []*node
	mapping []entry
	raw     ast.Node // of a specification, which is read elsewhere
	form    form
}

type form int

const (
	isNull form = iota
	isScalar
	isList
	isMapping
)

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    place
	value *node
}

// parseYAML reads a file that holds one mapping at most. It returns what could be read even where
// it also returns problems.
func parseYAML(name string, data []byte) (*node, Problems) {
	r := &reader{name: name}
	if len(data) > maxFile {
		r.fault(place{name: name}, "the file has %d bytes, and a configuration at most %d; name the right file", len(data), maxFile)
		return nil, r.problems
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return nil, r.problems
	}
	root := r.root(file)
	return root, r.problems
}

// reader turns the syntax tree of the YAML library into nodes.
type reader struct {
	name     string
	problems Problems
}

func (r *reader) fault(at place, format string, args ...any) {
	r.problems = append(r.problems, Problem{at, fmt.Sprintf(format, args...)})
}

func (r *reader) syntax(err error) {
	at, text := place{name: r.name, line: 1, col: 1}, "this is not YAML"
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		at, text = r.at(syntax.GetToken()), "this is not YAML: "+syntax.GetMessage()
	}
	r.fault(at, "%s", text)
}

func (r *reader) at(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{name: r.name, line: 1, col: 1}
	}
	return place{name: r.name, line: t.Position.Line, col: t.Position.Column}
}

// root returns the mapping of the only document. An empty file is an empty mapping.
func (r *reader) root(file *ast.File) *node {
	var root *node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		n := r.node(doc.Body)
		switch {
		case n == nil || n.form == isNull:
		case root != nil:
			r.fault(n.at, "a second document begins here; write one document only")
		case n.form != isMapping:
			r.fault(n.at, "the file is %s; write settings, one to a line, such as listen: 127.0.0.1:8080", n.form)
		default:
			root = n
		}
	}
	return root
}

// node converts one value. It returns nil for a value that it reported as a problem.
func (r *reader) node(n ast.Node) *node {
	at := r.at(n.GetToken())
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(at, n.Values)
	case *ast.MappingValueNode:
		return r.mapping(at, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		return r.sequence(at, n)
	case *ast.NullNode:
		return &node{at: at}
	case *ast.LiteralNode:
		return &node{at: at, form: isScalar, scalar: &n.Value.Value}
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{at: at, form: isScalar, scalar: &n.GetToken().Value}
	}
	r.fault(at, "anchors, aliases, tags and merges are not read here; write the value itself")
	return nil
}

func (r *reader) mapping(at place, values []*ast.MappingValueNode) *node {
	m := &node{at: at, form: isMapping}
	seen := map[string]place{}
	for _, v := range values {
		key, keyAt := v.Key.GetToken().Value, r.at(v.Key.GetToken())
		if _, ok := v.Key.(*ast.StringNode); !ok {
			r.fault(keyAt, "this cannot be a key; write the name of a setting")
			continue
		}
		if first, twice := seen[key]; twice {
			r.fault(keyAt, "%q is set twice, first in line %d; keep one of them", key, first.line)
			continue
		}
		seen[key] = keyAt
		if key == specKey {
			m.mapping = append(m.mapping, entry{key, keyAt, r.opaque(keyAt, v.Value)})
			continue
		}
		if n := r.node(v.Value); n != nil {
			m.mapping = append(m.mapping, entry{key, keyAt, n})
		}
	}
	if len(m.mapping) > 0 {
		m.at = m.mapping[0].at // the library's own token for a mapping is the colon
	}
	return m
}

// specKey is the key of specifications, which have a grammar of their own.
const specKey = "spec"

func (r *reader) opaque(at place, n ast.Node) *node {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return &node{at: at, form: isMapping, raw: n}
	}
	if plain := r.node(n); plain != nil {
		return &node{at: at, form: plain.form}
	}
	return &node{at: at}
}

func (r *reader) sequence(at place, s *ast.SequenceNode) *node {
	l := &node{at: at, form: isList}
	for _, v := range s.Values {
		if v == nil {
			continue
		}
		if n := r.node(v); n != nil {
			l.list = append(l.list, n)
		}
	}
	return l
}

// String returns the form with its article, for messages.
func (f form) String() string {
	return [...]string{"empty", "a single value", "a list", "a group of settings"}[f]
}
