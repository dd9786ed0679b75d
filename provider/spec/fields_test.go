package spec

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
)

// Fields see an event as its specification does, also when it came in a batch, in a form, or damaged.
func TestFieldsOfEvents(t *testing.T) {
	form := plain()
	form.Form = "payload"
	for _, c := range []struct {
		name   string
		spec   Spec
		header http.Header
		body   string
		fields []Value
		want   [][]string // of each event
	}{
		{"a document", plain(), http.Header{"X-Test": {"yes"}}, `{"id":"a","n":1,"deep":{"ok":true},"list":["x","y"]}`,
			[]Value{"json:$.n", "json:$.deep.ok", "json:$.list[1]", "header:X-Test", "json:$.absent", "header:X-Absent"},
			[][]string{{"1", "true", "y", "yes", "", ""}}},
		{"a batch", batch("json:$.events[*]"), nil, `{"shop":"s","events":[{"id":"a","kind":"k"},{"id":"b"}]}`,
			[]Value{"item:$.kind", "json:$.shop", "parent:$.shop", "json:$.events[0].id"},
			[][]string{{"k", "s", "s", "a"}, {"", "s", "s", "b"}}},
		{"nested batches", batch("json:$.entry[*].changes[*]"), nil, `{"entry":[{"id":"e1","changes":[{"id":"a"}]},{"id":"e2","changes":[{"id":"b"}]}]}`,
			[]Value{"item:$.id", "parent:$.id"}, [][]string{{"a", "e1"}, {"b", "e2"}}},
		{"a form", form, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "payload=%7B%22id%22%3A%22a%22%2C%22n%22%3A%22x%22%7D&also=form",
			[]Value{"json:$.n", "form:also"}, [][]string{{"x", "form"}}},
		{"twice with different values", plain(), http.Header{"X-Test": {"a", "b"}}, `{"id":"a","n":1,"n":2,"m":1,"m":1}`,
			[]Value{"json:$.n", "json:$.m", "header:X-Test"}, [][]string{{"", "1", ""}}},
		{"no JSON", plain(), http.Header{"X-Test": {"yes"}}, `<xml/>`,
			[]Value{"json:$.n", "header:X-Test"}, [][]string{{"", "yes"}}},
		{"a batch that is none", batch("json:$.events[*]"), nil, `{"events":3,"n":1}`,
			[]Value{"item:$.n", "json:$.n"}, [][]string{{"1", "1"}}},
		{"no fields", plain(), nil, `{"id":"a"}`, nil, [][]string{{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := build1(t, c.spec, Settings{})
			fields, err := p.Spec().Fields(c.fields...)
			if err != nil {
				t.Fatal(err)
			}
			req := request(t, p, c.body)
			for name, values := range c.header {
				req.Header[name] = values
			}
			d, err := p.Open(req)
			if err != nil {
				t.Fatal(err)
			}
			var got [][]string
			for i := range d.Events {
				got = append(got, fields.Read(&d.Events[i]))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFieldsThatCanNotBeRead(t *testing.T) {
	for field, why := range map[Value]string{
		"json:x": "begins with $", "query:x": "cannot be used here", "hash:json:$.x": "digest", "body": "cannot be used here",
		"item:$.x": "only where split", "json:$.x[*]": "[*]", "json:$.x?": "optional", "": "no such kind", "const:a": "cannot be used here",
	} {
		if _, err := plain().Fields(field); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want an error with %q", field, err, why)
		}
	}
	broken := plain()
	broken.Split = &Split{}
	if _, err := broken.Fields(); err == nil {
		t.Error("a specification that cannot be applied was accepted")
	}
}

// FuzzFields: whatever the body, reading does not panic, and says as much as was asked.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"id":"a","events":[{"id":"b"}]}`))
	f.Add([]byte(`{"events":[{},{}]}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, s := range []Spec{plain(), batch("json:$.events[*]")} {
			fields, err := s.Fields("json:$.id", "json:$.events[0].id", "header:X", "form:a")
			if err != nil {
				t.Fatal(err)
			}
			if got := fields.Read(&hookonce.Event{Body: body}); len(got) != 4 {
				t.Errorf("%d texts", len(got))
			}
		}
	})
}
