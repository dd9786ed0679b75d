package spec

import (
	"fmt"
	"net/http"

	"github.com/hookonce/hookonce"
)

// Fields reads fields of verified events, for those who choose between events by what is in them. It
// sees an event as its specification does: forms and encoded bodies are read, item: and parent: lead
// through the one item of an event that came in a batch, and a field that is there twice with different
// values counts as absent. It is immutable and safe for concurrent use.
type Fields struct {
	layout *layout
	values []value
}

// Fields compiles the values, each of which is a header:, json:, item:, parent: or form: value.
func (s Spec) Fields(values ...Value) (*Fields, error) {
	l, err := newLayout(s)
	if err != nil {
		return nil, err
	}
	f := &Fields{layout: l}
	for _, text := range values {
		v, err := l.fact(text, kindHeader, kindJSON, kindItem, kindParent, kindForm)
		if err != nil {
			return nil, err
		}
		if v.hashed {
			return nil, fmt.Errorf("%q: a digest cannot be compared with a text; leave out its first part", text)
		}
		f.values = append(f.values, v)
	}
	return f, nil
}

// Read returns the texts of the values in an event, in their order; empty for one that is absent. They
// may be views of the event's body.
func (f *Fields) Read(ev *hookonce.Event) []string {
	r := &reading{layout: f.layout, req: &hookonce.Request{Method: http.MethodPost, Header: ev.Header, Body: ev.Body}}
	if f.layout.splitter != nil {
		text, _ := r.enclosed()
		if items, err := f.layout.splitter.items(text); err == nil && len(items) == 1 {
			r.enter(items[0])
		}
	}
	texts := make([]string, len(f.values))
	for i := range f.values {
		texts[i] = r.get(&f.values[i])
	}
	return texts
}

// NamesResource reports whether events of this sender can say which resource they are about.
func (s Spec) NamesResource() bool {
	return len(s.Event.Resource) > 0 || s.Order != nil && len(s.Order.Scope) > 0
}
