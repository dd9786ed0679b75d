package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Fault is one mistake in a specification.
type Fault struct {
	// Line and Column say where it is in the text that the specification was read from, from 1. Zero if
	// it was found in the specification and not in a text: see [Locate].
	Line, Column int
	// Field is the field that it is about, such as verify[0].hash. Empty for the text as a whole.
	Field string
	// Text says what is wrong and what to write.
	Text string
}

// Error returns the place, as far as it is known, the field and the text.
func (f Fault) Error() string {
	text := f.Text
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Line == 0 {
		return text
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
}

// Faults are the mistakes that [Parse] or [Spec.Validate] found: all of them, in the order of the lines
// where those are known.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// add appends the fault that an error is, if it is one and not nil.
func (f *Faults) add(err error) {
	var one Fault
	if errors.As(err, &one) {
		*f = append(*f, one)
	}
}

// fault returns a mistake in a field.
func fault(field, format string, args ...any) error {
	return Fault{Field: field, Text: fmt.Sprintf(format, args...)}
}

// within says which field an error is about. Of a fault the field becomes a longer one.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	inner, is := err.(Fault)
	if !is {
		return Fault{Field: field, Text: err.Error()}
	}
	if inner.Field != "" && inner.Field[0] != '[' {
		field += "."
	}
	inner.Field = field + inner.Field
	return inner
}

// Locate says where the faults that [Spec.Validate] or [New] found are: in the text that [Parse] read the
// specification from. The result is of type [Faults], in the order of the lines. A fault in what is not
// there has the place of the group that lacks it. Other errors are returned as they are.
func Locate(text []byte, err error) error {
	root, unread := parseRoot(text)
	if unread != nil {
		return err
	}
	return LocateNode(root, err)
}

// LocateNode is [Locate] for what [ParseNode] read.
func LocateNode(root ast.Node, err error) error {
	var found Faults
	var one Fault
	switch {
	case errors.As(err, &found):
		found = slices.Clone(found)
	case errors.As(err, &one):
		found = Faults{one}
	default:
		return err
	}
	for i := range found {
		if f := &found[i]; f.Line == 0 {
			at := begin(find(root, f.Field))
			f.Line, f.Column = at.Line, at.Column
		}
	}
	slices.SortStableFunc(found, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return found
}

// find returns the node that a field leads to, as far as there is one.
func find(n ast.Node, field string) ast.Node {
	for _, step := range strings.FieldsFunc(field, func(c rune) bool { return strings.ContainsRune(".[]", c) }) {
		inner := child(n, step)
		if inner == nil {
			break
		}
		n = inner
	}
	return n
}

// child returns the member of a group or the element of a list with that name or number, nil if there is
// none.
func child(n ast.Node, step string) ast.Node {
	if list, is := n.(*ast.SequenceNode); is {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(list.Values) {
			return list.Values[i]
		}
		return nil
	}
	pairs, _ := mapping(n)
	for _, pair := range pairs {
		if key, ok := scalar(pair.Key); ok && key == step {
			return pair.Value
		}
	}
	return nil
}
