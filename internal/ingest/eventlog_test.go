package ingest_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// logged returns an option that logs into the buffer, and a function that reads the lines back.
func logged(buffer *bytes.Buffer) func(*ingest.Options) {
	return func(o *ingest.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(buffer, &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
}

func lines(t *testing.T, buffer *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for d := json.NewDecoder(buffer); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

func TestOneLinePerEvent(t *testing.T) {
	var buffer bytes.Buffer
	g := newGate(t, logged(&buffer))
	const private = "4242424242424242"
	for _, c := range []struct{ body, level, message, key string }{
		{`{"id":"a","type":"paid","card":"` + private + `"}`, "INFO", "event accepted", "a"},
		{`{"id":"a","type":"paid","card":"` + private + `"}`, "INFO", "event is a duplicate", "a"},
		{`{"id":"a","type":"paid"}`, "WARN", "event has the key of another with other content; the first stands", "a"},
		{`{"type":"paid"}`, "WARN", "event accepted without a key; its copies cannot be recognised", ""},
	} {
		g.send("billing", c.body)
		if strings.Contains(buffer.String(), private) || strings.Contains(buffer.String(), sign(c.body)) {
			t.Errorf("the log has a body or a signature: %s", buffer.String())
		}
		got := lines(t, &buffer)
		if len(got) != 1 {
			t.Errorf("%d lines for %s", len(got), c.body)
			continue
		}
		line := got[0]
		if line["level"] != c.level || line["msg"] != c.message || line["key"] != c.key || line["source"] != "billing" || line["type"] != "paid" {
			t.Errorf("line %v for %s", line, c.body)
		}
	}
}

// A rejected request is named by its path and the address that it came from, without what may be a token in it.
func TestRejectedLineNamesPathAndAddress(t *testing.T) {
	long := "/in/" + strings.Repeat("x", 500)
	for _, c := range []struct{ target, forwarded, path, address string }{
		{"/in/billing", "", "/in/billing", "192.0.2.1"},
		{"/in/billing/", "", "/in/billing/", "192.0.2.1"},
		{"/in/billing?token=s3cret", "", "/in/billing", "192.0.2.1"},
		{"/in/nobody", "198.51.100.7", "/in/nobody", "198.51.100.7"},
		{"/in/nobody/s3cret", "what?", "/in/nobody/…", "192.0.2.1:1234"},
		{"/webhooks/stripe/s3cret/x?s3cret", "", "/webhooks/stripe/…", "192.0.2.1"},
		{"/in/a%0Ab\u00e9", "", "/in/a%0Ab%C3%A9", "192.0.2.1"},
		{long, "", long[:128] + "…", "192.0.2.1"},
		{"/", "", "/", "192.0.2.1"},
	} {
		var buffer bytes.Buffer
		g := newGate(t, func(o *ingest.Options) {
			logged(&buffer)(o)
			o.TrustedProxies = networks("192.0.2.0/24")
		})
		r := httptest.NewRequest(http.MethodPost, c.target, strings.NewReader("{}"))
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		serve(g, r)
		if strings.Contains(buffer.String(), "s3cret") {
			t.Errorf("the log has a token: %s", buffer.String())
		}
		got := lines(t, &buffer)
		if len(got) != 1 || got[0]["msg"] != "request rejected" || got[0]["path"] != c.path || got[0]["address"] != c.address {
			t.Errorf("%s: %v", c.target, got)
		}
	}
}

// An event that no route wanted says so.
func TestUnroutedLine(t *testing.T) {
	var buffer bytes.Buffer
	g := newGate(t, func(o *ingest.Options) {
		logged(&buffer)(o)
		o.Sources[0].Routes = []ingest.Route{{To: []string{"app"}, Types: []string{"paid"}}}
	})
	g.send("billing", `{"id":"a","type":"paid"}`)
	g.send("billing", `{"id":"b","type":"opened"}`)
	got := lines(t, &buffer)
	if len(got) != 2 || got[0]["note"] != nil || got[1]["msg"] != "event accepted" || got[1]["note"] != "no route wanted it" {
		t.Errorf("lines %v", got)
	}
}

// A flood of bad requests is counted in full and logged in part, and hides none of our own failures.
func TestRejectedLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buffer bytes.Buffer
		var log *slog.Logger
		g := newGate(t, func(o *ingest.Options) { logged(&buffer)(o); o.Logger = loglimit.Bound(o.Logger); log = o.Logger })
		forge := func() {
			r := request("billing", `{"id":"a"}`)
			r.Header.Set(signatureHeader, "forged")
			serve(g, r)
		}
		for range 1000 {
			forge()
		}
		if got := lines(t, &buffer); len(got) != 10 || got[0]["reason"] != "signature_mismatch" || got[0]["level"] != "WARN" {
			t.Errorf("%d lines, the first %v", len(got), got[0])
		}
		g.send("billing", `{"panic":"boom"}`)
		if got := lines(t, &buffer); len(got) != 1 || got[0]["level"] != "ERROR" || !strings.Contains(got[0]["error"].(string), "boom") {
			t.Errorf("a panic is hidden by the flood: %v", got)
		}
		loglimit.Flush(log)
		if got := lines(t, &buffer); len(got) != 1 || got[0]["suppressed"] != 990.0 || got[0]["reason"] != "signature_mismatch" || got[0]["source"] != "billing" {
			t.Errorf("after the flood: %v", got)
		}
		if n := gather(t, g, "hookonce_rejected_total")["signature_mismatch,billing"]; n != 1000 {
			t.Errorf("%v requests counted, want 1000", n)
		}
	})
}

// A busy source logs a part of its events and says how many are missing; what wants a person's eye does
// not drown in it, and the level debug has them all.
func TestEventLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buffer bytes.Buffer
		var log *slog.Logger
		g := newGate(t, func(o *ingest.Options) { logged(&buffer)(o); o.Logger = loglimit.Bound(o.Logger); log = o.Logger })
		for range 1000 {
			g.send("billing", `{"id":"a","type":"paid"}`)
		}
		if got := lines(t, &buffer); len(got) != 101 || got[0]["msg"] != "event accepted" {
			t.Errorf("%d lines, the first %v", len(got), got[0])
		}
		g.send("billing", `{"type":"paid"}`)
		if got := lines(t, &buffer); len(got) != 1 || got[0]["level"] != "WARN" {
			t.Errorf("an unkeyed event is hidden by the flood: %v", got)
		}
		loglimit.Flush(log)
		if got := lines(t, &buffer); len(got) != 1 || got[0]["suppressed"] != 899.0 || got[0]["msg"] != "event is a duplicate" {
			t.Errorf("after the flood: %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var buffer bytes.Buffer
		g := newGate(t, func(o *ingest.Options) {
			o.Logger = slog.New(slog.NewJSONHandler(&buffer, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		for range 1000 {
			g.send("billing", `{"id":"a","type":"paid"}`)
		}
		if got := lines(t, &buffer); len(got) != 1000 {
			t.Errorf("%d lines at the level debug", len(got))
		}
	})
}
