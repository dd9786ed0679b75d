package settings

import (
	"errors"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile bounds the file, so that something else given by mistake is refused at once.
const maxFile = 1 << 20

// Node is a value in the file, with its place. Exactly one of its forms is set; none of them for a
// null or an empty value.
type Node struct {
	At      Place
	Scalar  *string
	List    []*Node
	Mapping []Entry
	Raw     ast.Node // of what has a grammar of its own, and is read elsewhere
	Form    Form
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Key   string
	At    Place
	Value *Node
}

// Form is what kind of value a [Node] is.
type Form int

// The forms of values.
const (
	IsNull Form = iota
	IsScalar
	IsList
	IsMapping
)

// String returns the form with its article, for messages.
func (f Form) String() string {
	return [...]string{"empty", "a single value", "a list", "a group of settings"}[f]
}

// Parse reads a file that holds one mapping at most. It returns what could be read even where it also
// reports faults, and nil if that is nothing. A mapping below one of the opaque keys has a grammar of
// its own: its node has no entries, but Raw.
func Parse(r *Report, name string, data []byte, opaque ...string) *Node {
	p := &treeReader{Report: r, name: name, opaque: opaque}
	if len(data) > maxFile {
		p.Fault(Place{Name: name}, "the file has %d bytes, and a configuration at most %d; name the right file", len(data), maxFile)
		return nil
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		p.syntax(err)
		return nil
	}
	return p.root(file)
}

// treeReader turns the syntax tree of the YAML library into nodes.
type treeReader struct {
	*Report
	name   string
	opaque []string
}

func (p *treeReader) syntax(err error) {
	at, text := Place{p.name, 1, 1}, "this is not YAML"
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		at, text = p.at(syntax.GetToken()), "this is not YAML: "+syntax.GetMessage()
	}
	p.Fault(at, "%s", text)
}

func (p *treeReader) at(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{p.name, 1, 1}
	}
	return Place{p.name, t.Position.Line, t.Position.Column}
}

// root returns the mapping of the only document. An empty file is an empty mapping.
func (p *treeReader) root(file *ast.File) *Node {
	var root *Node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		n := p.node(doc.Body)
		switch {
		case n == nil || n.Form == IsNull:
		case root != nil:
			p.Fault(n.At, "a second document begins here; write one document only")
		case n.Form != IsMapping:
			p.Fault(n.At, "the file is %s; write settings, one to a line, such as listen: 127.0.0.1:8080", n.Form)
		default:
			root = n
		}
	}
	return root
}

// node converts one value. It returns nil for a value that it reported as a fault.
func (p *treeReader) node(n ast.Node) *Node {
	at := p.at(n.GetToken())
	switch n := n.(type) {
	case *ast.MappingNode:
		return p.mapping(at, n.Values)
	case *ast.MappingValueNode:
		return p.mapping(at, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		return p.sequence(at, n)
	case *ast.NullNode:
		return &Node{At: at}
	case *ast.LiteralNode:
		return &Node{At: at, Form: IsScalar, Scalar: &n.Value.Value}
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &Node{At: at, Form: IsScalar, Scalar: &n.GetToken().Value}
	}
	p.Fault(at, "anchors, aliases, tags and merges are not read here; write the value itself")
	return nil
}

func (p *treeReader) mapping(at Place, values []*ast.MappingValueNode) *Node {
	m := &Node{At: at, Form: IsMapping}
	seen := map[string]Place{}
	for _, v := range values {
		key, keyAt := v.Key.GetToken().Value, p.at(v.Key.GetToken())
		if _, ok := v.Key.(*ast.StringNode); !ok {
			p.Fault(keyAt, "this cannot be a key; write the name of a setting")
			continue
		}
		if first, twice := seen[key]; twice {
			p.Fault(keyAt, "%q is set twice, first in line %d; keep one of them", key, first.Line)
			continue
		}
		seen[key] = keyAt
		if slices.Contains(p.opaque, key) {
			m.Mapping = append(m.Mapping, Entry{key, keyAt, p.raw(keyAt, v.Value)})
			continue
		}
		if n := p.node(v.Value); n != nil {
			m.Mapping = append(m.Mapping, Entry{key, keyAt, n})
		}
	}
	if len(m.Mapping) > 0 {
		m.At = m.Mapping[0].At // the library's own token for a mapping is the colon
	}
	return m
}

// raw returns a value that is read elsewhere, if it is a mapping.
func (p *treeReader) raw(at Place, n ast.Node) *Node {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return &Node{At: at, Form: IsMapping, Raw: n}
	}
	if plain := p.node(n); plain != nil {
		return &Node{At: at, Form: plain.Form}
	}
	return &Node{At: at}
}

func (p *treeReader) sequence(at Place, s *ast.SequenceNode) *Node {
	l := &Node{At: at, Form: IsList}
	for _, v := range s.Values {
		if v == nil {
			continue
		}
		if n := p.node(v); n != nil {
			l.List = append(l.List, n)
		}
	}
	return l
}
