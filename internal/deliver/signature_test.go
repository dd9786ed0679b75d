package deliver

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// The identifier of a message is the same for every attempt and in every process, another for every
// event and destination, and can be sent.
func TestMessageID(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range []string{"billing:evt_1", "billing:evt_2", "billing#1", "billing:evt_1%20app"} {
		for _, name := range []string{"app", "app2", "évt app"} {
			id := messageID(key, name)
			if seen[id] || len(id) != len("msg_")+32 || id != header.Safe(id) {
				t.Errorf("%s for %s, %s", id, key, name)
			}
			seen[id] = true
		}
	}
	if id := messageID("billing:evt_1", "app"); id != "msg_c891b5f0c1b6c8f6c8c92df3838c627c" {
		t.Errorf("%s: identifiers must not change from version to version", id)
	}
}

// Where there is a secret, the headers of a provider that signs the same way give way to ours. Where
// there is none they are passed on, for the application to verify.
func TestProviderSignsTheSameWay(t *testing.T) {
	stored := []byte("Webhook-Id: msg_theirs\r\nWebhook-Timestamp: 1\r\nWebhook-Signature: v1,theirs v1,more\r\n")
	rules := map[string]*header.Rule{"billing": header.NewRule(header.Spec{Once: []string{"webhook-id", "webhook-timestamp", "webhook-signature"}})}
	w := work("billing", "evt_1", 7)
	w.Header = stored
	signed := headerOf(&destination{name: "app", secrets: [][]byte{[]byte("fake")}, Destination: Destination{Rules: rules}}, w, time.Unix(1700000000, 0))
	for name, want := range map[string]string{
		header.WebhookID:        messageID("billing:evt_1", "app"),
		header.WebhookTimestamp: "1700000000",
	} {
		if got := signed[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if s := signed[header.WebhookSignature]; len(s) != 1 || strings.Contains(s[0], "theirs") {
		t.Errorf("signature %q", s)
	}
	unsigned := headerOf(&destination{name: "app", Destination: Destination{Rules: rules}}, w, time.Now())
	if got := unsigned[header.WebhookSignature]; !slices.Equal(got, []string{"v1,theirs v1,more"}) || unsigned.Get(header.WebhookID) != "msg_theirs" {
		t.Errorf("without a secret of ours: %v", unsigned)
	}
	strange := headerOf(&destination{name: "app"}, w, time.Now())
	if strange.Get(header.WebhookSignature) != "" || strange.Get(header.WebhookID) != "" {
		t.Errorf("of a provider that does not sign the same way: %v", strange)
	}
}

// What is known about an event is in headers, and nobody else's headers say so.
func TestOwnHeaders(t *testing.T) {
	w := &journal.Work{
		Held: journal.Held{EventID: 7, Destination: "app", Token: 3}, Source: "billing", Key: "evt_2", Type: "a b",
		ReceivedAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600)),
		Stale:      true, Forced: true, LogicalDuplicateKey: "evt 1",
		Header: []byte("Hookonce-Attempt: 99\r\nHookonce-Unheard-Of: 1\r\nhookonce-logical-duplicate-of: other\r\nTraceparent: " + exampleTrace + "\r\nTracestate: a=1\r\n"),
	}
	traced := header.NewChoice(nil, nil, []string{"traceparent", "tracestate"})
	h := headerOf(&destination{name: "app", Destination: Destination{Stale: StaleFlag}, choice: traced}, w, time.Now())
	for name, want := range map[string]string{
		"Hookonce-Source": "billing", "Hookonce-Event-Id": "7", "Hookonce-Key": "evt_2", "Hookonce-Event-Type": "a%20b", "Hookonce-Attempt": "3",
		"Hookonce-First-Seen": "2026-01-02T02:04:05.006Z", "Hookonce-Stale": "true", "Hookonce-Forced": "true",
		"Hookonce-Logical-Duplicate-Of": "evt%201", "Idempotency-Key": "billing:evt_2", "Traceparent": exampleTrace, "Tracestate": "a=1",
		"Hookonce-Unheard-Of": "",
	} {
		if got := strings.Join(h[name], ", "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	untraced := headerOf(&destination{name: "app"}, w, time.Now())
	if untraced.Get("Traceparent") == exampleTrace || untraced.Get("Traceparent") == "" || untraced.Get("Tracestate") != "" {
		t.Errorf("a stranger's trace is joined: %v", untraced)
	}
	plain := headerOf(&destination{name: "app"}, work("billing", "evt_1", 7), time.Now())
	for _, absent := range []string{"Hookonce-Stale", "Hookonce-Forced", "Hookonce-Logical-Duplicate-Of", header.WebhookID, header.WebhookSignature} {
		if v, ok := plain[absent]; ok {
			t.Errorf("%s: %q for an event that is none of it", absent, v)
		}
	}
}

// The lists choose among the provider's headers; the settings' own are added in any case.
func TestHeaderLists(t *testing.T) {
	stored := []byte("Content-Type: application/json\r\nContent-Encoding: gzip\r\nX-Signature: s\r\nX-Noise: n\r\n" +
		"User-Agent: Provider/1\r\nTraceparent: " + exampleTrace + "\r\n")
	own := []string{"Content-Encoding", "Content-Type", "Hookonce-Attempt", "Hookonce-Event-Id", "Hookonce-First-Seen", "Hookonce-Key", "Hookonce-Source", "Idempotency-Key", "Traceparent", "User-Agent"}
	for _, c := range []struct {
		name     string
		settings Destination
		want     []string
	}{
		{"all", Destination{}, []string{"X-Noise", "X-Signature"}},
		{"pass", Destination{PassHeader: []string{"x-signature"}}, []string{"X-Signature"}},
		{"pass none that came", Destination{PassHeader: []string{"x-other"}}, nil},
		{"pass and also", Destination{PassHeader: []string{"x-signature"}, AlsoPass: []string{"x-no*"}}, []string{"X-Noise", "X-Signature"}},
		{"drop", Destination{DropHeader: []string{"X-NOISE", "user-agent", "content-type"}}, []string{"X-Signature"}},
		{"add", Destination{Header: http.Header{"x-team": {"payments"}}, PassHeader: []string{"x-other"}}, []string{"X-Team"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &destination{name: "app"}
			if err := d.headers(c.settings); err != nil {
				t.Fatal(err)
			}
			w := work("billing", "evt_1", 7)
			w.Header = stored
			h := headerOf(d, w, time.Now())
			var names []string
			for name := range h {
				names = append(names, name)
			}
			slices.Sort(names)
			want := slices.Sorted(slices.Values(slices.Concat(own, c.want)))
			if !slices.Equal(names, want) {
				t.Errorf("sent %q, want %q", names, want)
			}
		})
	}
	t.Run("instead of the provider's", func(t *testing.T) {
		d := &destination{name: "app"}
		if err := d.headers(Destination{Header: http.Header{"user-agent": {"us"}}}); err != nil {
			t.Fatal(err)
		}
		w := work("billing", "evt_1", 7)
		w.Header = stored
		if got := headerOf(d, w, time.Now())["User-Agent"]; !slices.Equal(got, []string{"us"}) {
			t.Errorf("User-Agent: %q", got)
		}
	})
}

// headerOf is the header of an attempt at an event.
func headerOf(d *destination, w *journal.Work, now time.Time) http.Header {
	return requestHeader(d, w, d.passed(w, now))
}
