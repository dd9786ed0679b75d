package spec

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// itemwise is a sender that signs fields of each item.
func itemwise() Spec {
	s := batch("json:$.in.items[*]")
	s.Verify = []Verify{{
		Signature: Signature{In: "item:$.sig"}, Sign: []Value{"item:$.id", "item:$.sum.value", "item:$.note"}, Join: ":", Covers: CoversFields, PerItem: true,
	}}
	return s
}

// TestSignedFieldsHaveOneSpelling: some parsers do not tell upper from lower case in names, and take the
// last member that fits. None that was added to a signed request may fit.
func TestSignedFieldsHaveOneSpelling(t *testing.T) {
	p := build1(t, itemwise(), Settings{})
	genuine := string(request(t, p, `{"in":{"items":[{"id":"1","sum":{"value":5,"unit":"EUR"}}]}}`).Body)
	if _, err := p.Open(&hookonce.Request{Body: []byte(genuine), Now: now}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ after, add string }{
		{`"id":"1"`, `,"ID":"2"`},
		{`"id":"1"`, `,"Note":"x"`}, // which the sender left out
		{`"value":5`, `,"Value":500`},
		{`"value":5`, `,"VALUE":5`},
		{`"id":"1"`, `,"\u0053um":{"value":500}`},
		{`"id":"1"`, `,"ſum":{"value":500}`}, // a long s
	} {
		req := &hookonce.Request{Body: []byte(strings.Replace(genuine, c.after, c.after+c.add, 1)), Now: now}
		rejected(t, p, req, hookonce.ReasonSignatureMalformed)
	}
	for _, changed := range []string{
		strings.Replace(genuine, `"unit"`, `"Unit":"USD","unit"`, 1), // nobody signs that
		strings.Replace(genuine, `{"in"`, `{"other":1,"in"`, 1),
	} {
		if _, err := p.Open(&hookonce.Request{Body: []byte(changed), Now: now}); err != nil {
			t.Errorf("%s: %v", changed, err)
		}
	}
	// Where the body is signed as a whole the sender has written both.
	whole := build1(t, plain(), Settings{})
	if d := open(t, whole, `{"id":"1","ID":"2"}`); d.Events[0].Key != "1" {
		t.Errorf("key %q", d.Events[0].Key)
	}
}

// TestSignedItemsAreInTheirArray: a parser that finds items where there are none that are signed would
// hand on what nobody signed.
func TestSignedItemsAreInTheirArray(t *testing.T) {
	p := build1(t, itemwise(), Settings{})
	genuine := string(request(t, p, `{"in":{"items":[{"id":"1","sum":{"value":5}}]}}`).Body)
	item := strings.TrimSuffix(strings.TrimPrefix(genuine, `{"in":{"items":[`), `]}}`)
	const evil = `{"id":"2"}`
	for _, body := range []string{
		strings.TrimSuffix(genuine, "}}") + `,"Items":[` + evil + `]}}`,
		strings.TrimSuffix(genuine, "}}") + `},"IN":{"items":[` + evil + `]}}`,
		strings.TrimSuffix(item, "}") + `,"in":{"items":{"0":` + evil + `}}}`,
		strings.TrimSuffix(item, "}") + `,"In":{"items":[` + evil + `]}}`,
		item,
		`[` + genuine + `]`,
		`null`,
	} {
		rejected(t, p, &hookonce.Request{Body: []byte(body), Now: now}, hookonce.ReasonSignatureMissing)
	}
}

// TestSignedItemsAreCheckedAsTheyAreFound: the first that is wrong ends it, however many there are.
func TestSignedItemsAreCheckedAsTheyAreFound(t *testing.T) {
	p := build1(t, itemwise(), Settings{})
	genuine := string(request(t, p, `{"in":{"items":[{"id":"1"}]}}`).Body)
	item := strings.TrimSuffix(strings.TrimPrefix(genuine, `{"in":{"items":[`), `]}}`)
	many := func(n int, item string) *hookonce.Request {
		return &hookonce.Request{Body: []byte(`{"in":{"items":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}}`), Now: now}
	}
	one, all := many(1, "0"), many(1<<18, "0")
	rejected(t, p, all, hookonce.ReasonSignatureMissing)
	few := testing.AllocsPerRun(5, func() { p.Open(one) })
	if n := testing.AllocsPerRun(5, func() { p.Open(all) }); n > few+3 {
		t.Errorf("strangers cause %v allocations with one item, and %v with many", few, n)
	}
	if d, err := p.Open(many(maxItems, item)); err != nil || len(d.Events) != maxItems {
		t.Errorf("%d items: %v", maxItems, err)
	}
	if _, err := p.Open(many(maxItems+1, item)); err == nil || !strings.Contains(err.Error(), "more than 10000 items") {
		t.Errorf("%d items: %v", maxItems+1, err)
	}
	// Signed as a whole, too large a batch is an event by itself: it is not lost.
	whole := build1(t, batch("json:$.in.items[*]"), Settings{})
	if d := open(t, whole, string(many(maxItems+1, "1").Body)); len(d.Events) != 1 || d.Unreadable == nil {
		t.Error("too large a batch was taken apart, or lost")
	}
}

// TestTheTypeOfTheContentDecidesNothing: it is not signed, and a copy without a key passes through.
func TestTheTypeOfTheContentDecidesNothing(t *testing.T) {
	inField, fields := plain(), plain()
	inField.Form = "payload"
	fields.Event.Key = [][]Value{{"form:id"}}
	for body, s := range map[string]Spec{"payload=%7B%22id%22%3A%221%22%7D": inField, "id=1&text=a": fields} {
		p := build1(t, s, Settings{})
		for _, contentType := range []string{formType, "", "text/plain", "application/json", "nonsense"} {
			req := request(t, p, body)
			req.Header.Set("Content-Type", contentType)
			if d, err := p.Open(req); err != nil || d.Events[0].Key != "1" || d.Unreadable != nil {
				t.Errorf("%s as %q: %+v, %v", body, contentType, d, err)
			}
		}
	}
}
