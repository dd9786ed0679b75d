package specdecode

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/hookonce/hookonce/provider/spec"
)

// Locate says where the faults that [spec.Spec.Validate] or [spec.New] found are, below the root that [Decode] read the
// specification from. The result is of type [spec.Faults], in the order of the lines. A fault in what is not there
// has the place of the group that lacks it. Other errors are returned as they are.
func Locate(root ast.Node, err error) error {
	var found spec.Faults
	var one spec.Fault
	switch {
	case errors.As(err, &found):
		found = slices.Clone(found)
	case errors.As(err, &one):
		found = spec.Faults{one}
	default:
		return err
	}
	for i := range found {
		if f := &found[i]; f.Line == 0 {
			at := begin(find(root, f.Field))
			f.Line, f.Column = at.Line, at.Column
		}
	}
	slices.SortStableFunc(found, func(a, b spec.Fault) int {
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
