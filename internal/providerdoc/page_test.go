package main

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// TestPageIsFresh fails when the catalogue has changed and the page has not.
func TestPageIsFresh(t *testing.T) {
	want, err := page()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../" + file)
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
	known, err := spec.Parse([]byte(find("(?s)```yml\n(.*?)```")))
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

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		15 * time.Second: "15 s", 155 * time.Second: "2 min 35 s", 100 * time.Minute: "1 h 40 min", 28 * time.Hour: "28 h", 72 * time.Hour: "3 d",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}
