package specyaml

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/hookonce/hookonce/internal/specdecode"
	"github.com/hookonce/hookonce/provider/spec"
)

// maxText bounds a specification in YAML, so that something else given by mistake is refused at once.
const maxText = 1 << 20

// Parse reads a specification in YAML. The names are those in the tags of [spec.Spec]; durations are written
// as in 5m, 36h and 3d. It is strict: what is unknown, set twice, of the wrong form, or not one of the
// words that a field takes is an error, which is of type [spec.Faults]. Whether the specification is complete
// and safe is up to [spec.Spec.Validate] and [spec.New]; [Locate] says where in the text their errors are. [Marshal]
// is the reverse.
func Parse(text []byte) (spec.Spec, error) {
	if len(text) > maxText {
		return spec.Spec{}, spec.Faults{{Line: 1, Column: 1, Text: fmt.Sprintf("the text has %d bytes, and a specification at most %d; name the right file", len(text), maxText)}}
	}
	root, err := parseRoot(text)
	if err != nil {
		return spec.Spec{}, err
	}
	return specdecode.Decode(root)
}

// Locate says where the faults that [spec.Spec.Validate] or [spec.New] found are: in the text that [Parse] read the
// specification from. The result is of type [spec.Faults], in the order of the lines. A fault in what is not
// there has the place of the group that lacks it. Other errors are returned as they are.
func Locate(text []byte, err error) error {
	root, unread := parseRoot(text)
	if unread != nil {
		return err
	}
	return specdecode.Locate(root, err)
}

// parseRoot returns the root of the only document in a text.
func parseRoot(text []byte) (root ast.Node, err error) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, spec.Faults{syntaxFault(err)}
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			return nil, spec.Faults{faultAt(doc.Body.GetToken(), "", "a second document begins here; write one only")}
		}
		root = doc.Body
	}
	if root == nil {
		return nil, spec.Faults{{Line: 1, Column: 1, Text: "there is no specification here; write name, verify and event at least"}}
	}
	return root, nil
}

func syntaxFault(err error) spec.Fault {
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		return faultAt(syntax.GetToken(), "", "this is not YAML: "+syntax.GetMessage())
	}
	return spec.Fault{Line: 1, Column: 1, Text: "this is not YAML"}
}

func faultAt(t *token.Token, field, text string) spec.Fault {
	f := spec.Fault{Line: 1, Column: 1, Field: field, Text: text}
	if t != nil && t.Position != nil {
		f.Line, f.Column = t.Position.Line, t.Position.Column
	}
	return f
}
