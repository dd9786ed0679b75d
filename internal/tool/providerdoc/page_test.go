package main

import (
	"bytes"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// TestPageIsFresh fails when the catalogue has changed and the page has not.
func TestPageIsFresh(t *testing.T) {
	want, err := page()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the catalogue says; run make docs", file)
	}
}

// TestPageExample takes the specification, the body and the header from the page, as a reader does.
func TestPageExample(t *testing.T) {
	text, err := page()
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("the page has no %s", pattern)
		}
		return string(m[1])
	}
	known, err := specyaml.Parse([]byte(find("(?s)```yml\n(.*?)```")))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.New(known, spec.Settings{Secrets: spec.Secrets(find(`--spec acme.yaml --secret (\S+)`))})
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(&hookonce.Request{
		Header: http.Header{"X-Acme-Signature": {find(`"X-Acme-Signature: (.*?)"`)}},
		Body:   []byte(strings.TrimSpace(find("(?s)```json\n(.*?)```"))),
		Now:    time.Unix(1770091506, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	if ev := d.Events[0]; ev.Key != "evt_1" || !ev.KeySigned || ev.Type != "order.paid" || ev.Resource != "1001" {
		t.Errorf("%+v", ev)
	}
}

// TestPageSpecifications parses every specification that the page shows.
func TestPageSpecifications(t *testing.T) {
	text, err := page()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(found) < 2 {
		t.Errorf("the page shows %d", len(found))
	}
	for _, one := range found {
		known, err := specyaml.Parse(one[1])
		if err == nil {
			err = known.Validate()
		}
		if err != nil {
			t.Errorf("%v in %s", err, one[1])
		}
	}
}

// TestPageNamesEveryField walks the specification as its decoder does. Each name must stand in the row of
// its block.
func TestPageNamesEveryField(t *testing.T) {
	rows := table(t, "Blocks")
	for _, block := range reflect.VisibleFields(reflect.TypeFor[spec.Spec]()) {
		name := tag(block)
		i := slices.IndexFunc(rows, func(row string) bool { return names(cell(row))[name] })
		if i < 0 {
			t.Errorf("the page has no block %s", name)
			continue
		}
		known := names(rows[i])
		for _, field := range fieldsOf(block.Type) {
			if !known[field] {
				t.Errorf("the block %s lacks %s", name, field)
			}
		}
	}
}

// fieldsOf returns the names of all fields of a type, and of those in it.
func fieldsOf(t reflect.Type) (all []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return fieldsOf(t.Elem())
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			if name := tag(field); name != "-" {
				all = append(append(all, name), fieldsOf(field.Type)...)
			}
		}
	}
	return all
}

func tag(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return name
}

// TestPageNamesEveryValue takes the kinds of values from the message that lists them.
func TestPageNamesEveryValue(t *testing.T) {
	known := names(strings.Join(table(t, "Values"), "\n"))
	_, err := specyaml.Parse([]byte("event: {type: [none]}"))
	_, list, _ := strings.Cut(err.Error(), "; use ")
	list, _, _ = strings.Cut(list, ";")
	kinds := regexp.MustCompile("[a-z_]+").FindAllString(strings.ReplaceAll(list, " or ", " "), -1)
	if len(kinds) < 15 {
		t.Fatalf("only %q are found in %v", kinds, err)
	}
	for _, kind := range kinds {
		if !known[kind] {
			t.Errorf("the page does not say what %s is", kind)
		}
	}
}

// table returns the rows of the table below a heading of the page.
func table(t *testing.T, heading string) []string {
	t.Helper()
	text, err := page()
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n### "+heading+"\n")
	below, _, _ = strings.Cut(below, "\n### ")
	rows := regexp.MustCompile(`(?m)^\| .*`).FindAllString(below, -1)
	if !found || len(rows) < 5 {
		t.Fatalf("the page has no table of %s", heading)
	}
	return rows[1:]
}

// cell returns the first cell of a row.
func cell(row string) string { return strings.Split(row, " | ")[0] }

// names returns the words that stand in code.
func names(text string) map[string]bool {
	all := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(text, -1) {
		for _, word := range regexp.MustCompile("[a-z_]+").FindAllString(code, -1) {
			all[word] = true
		}
	}
	return all
}
