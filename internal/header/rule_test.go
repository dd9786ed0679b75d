package header

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// acme is a sender of which all is known, and anyone one of which nothing is.
var (
	acme   = NewRule(Spec{Once: []string{"X-Acme-Event", "X_Acme_Tenant"}, Repeated: []string{"X-Acme-Signature"}, Listed: []string{"X-Acme-Topic", "x-acme-*"}, Secret: []string{"X-Acme-Token"}})
	anyone = NewRule(Spec{Once: []string{"X-Acme-Event", "X_Acme_Tenant"}, Secret: []string{"X-Acme-Token"}})
)

// attacks are headers that applications, frameworks and proxies act on, and that no sender of webhooks sets.
var attacks = []string{
	"Proxy", "Proxy-Host", "X-Original-URL", "X-Rewrite-URL", "X-Original-Host", "X-Original-URI", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override",
	"X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-Cluster-Client-IP", "Fastly-Client-IP", "Fly-Client-IP", "X-Azure-ClientIP",
	"Remote-User", "Remote-Groups", "X-Remote-User", "X-Authenticated-User", "X-Authenticated-Userid", "X-Auth-Request-Email", "X-Forwarded-For", "X-Forwarded-User",
	"X-Webauth-User", "Tailscale-User-Login", "X-Hasura-Role", "X-Hasura-Admin-Secret", "X-Parse-Master-Key", "X-Role", "Sm-User", "Iv-User", "Iv-Groups", "Eppn",
	"Dapr-Api-Token", "X-Amz-Security-Token", "X-Https", "X-SSL", "X-CSRFToken", "X-XSRFToken", "X-Goog-Authenticated-User-Email", "X-Amzn-Oidc-Identity", "X-Ms-Client-Principal", "Ssl-Client-Verify", "Ssl-Client-Cert", "X-SSL-Client-Verify",
	"X-SSL-Client-S-DN", "X-Client-Cert", "Client-Cert", "X-Forwarded-Client-Cert", "Range", "If-None-Match", "If-Match", "If-Modified-Since", "If-Range", "If",
	"Forwarded-For", "Forwarded-Host", "Real-IP", "X-IP", "Incap-Client-IP", "Next-Action", "Method", "SM-User", "Iv-User", "X-Auth", "X-Scope-OrgID", "X-ProxiedEntitiesChain",
	"X-Serverless-Authorization", "X-Endpoint-API-UserInfo", "X-CloudTasks-QueueName", "X-CloudScheduler", "X-CloudScheduler-JobName", "X-Goog-IAP-JWT-Assertion",
	"Forwarded", "Via", "Accept-Encoding", "Authorization", "Cookie", "Cookie2", "X-Api-Key", "Origin", "Referer", "X-Middleware-Subrequest", "Content-Range",
	"Traceparent", "Tracestate", "Baggage", "Idempotency-Key", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature",
	"Hookonce-Key", "Hookonce-Source", "Hookonce-Attempt", "Hookonce-Signature", "Connection", "Host", "Te", "Upgrade", "Http2-Settings", "Transfer-Encoding",
	"Hookonce_Key", "Hookonce.Key", "Hookonce-Event_Type", "hookonce-event.type", "Idempotency_Key", "Idempotency.Key", "Webhook_id", "X_Forwarded_For", "X.Forwarded.For", "Content_Type", "Content.Type",
	"X_Acme_Event", "X.Acme.Event", "X-Acme_Event", "X-Acme.Event", "X-Acme-Tenant", "X.Acme.Tenant", "X-Acme-Else_1", "X!Acme!Event", "X-Acme-Token", "X_Acme_Token",
}

// parse reads field lines with the standard library, whose reading of HTTP/1 is the yardstick.
func parse(t testing.TB, lines []byte) http.Header {
	t.Helper()
	r := textproto.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(lines), strings.NewReader("\r\n"))))
	h, err := r.ReadMIMEHeader()
	if err != nil {
		t.Fatalf("%q is not HTTP/1 field lines: %v", lines, err)
	}
	return http.Header(h)
}

func encode(t testing.TB, r *Rule, h http.Header) http.Header {
	t.Helper()
	lines, err := r.Encode(h)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, lines)
}

// TestAttacksDoNotPass: whatever is known of the sender.
func TestAttacksDoNotPass(t *testing.T) {
	for rule, r := range map[string]*Rule{"known": acme, "unknown": anyone, "and what is asked for": acme.And("X-Tenant", "X-*", "Re*", "Hook*", "S*")} {
		for _, name := range attacks {
			h := http.Header{}
			h.Set(name, "evil")
			if got := encode(t, r, h); len(got) > 0 {
				t.Errorf("%s sender: %q passes", rule, got)
			}
			filter := Filter{Rule: r, Choice: NewChoice(nil, nil, []string{"X-*"})}
			if name := textproto.CanonicalMIMEHeaderKey(name); filter.passes(name) || r.class(name) != none {
				t.Errorf("%s sender: %s is delivered", rule, name)
			}
		}
	}
	var nothing *Rule
	for _, name := range []string{"Proxy", "X-Original-Url", "Hookonce_key", "Hookonce-Key", "Idempotency-Key"} {
		if nothing.class(name) != none || (&Filter{}).passes(name) {
			t.Errorf("%s passes where there is no rule", name)
		}
	}
}

func TestWhatPasses(t *testing.T) {
	sent := http.Header{
		"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}, "User-Agent": {"Acme/1"},
		"X-Acme-Event": {"paid"}, "X_acme_tenant": {"7"}, "X-Acme-Signature": {"a", "b"}, "X-Acme-Topic": {"x", "y"}, "X-Acme-New": {"1", "1"}, "X-Acme-Token": {"secret"},
		"X-Else": {"1"}, "X-Latin": {"caf\xe9"}, "X-Empty": {""}, "X-Split": {"a\r\nInjected: b"}, "Bad Name": {"x"}, "": {"x"},
		"X-Hop": {"1"}, "Connection": {"close, x-hop", "X-Acme-Event, X-Acme-New, Content-Type"},
	}
	known := http.Header{
		"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}, "User-Agent": {"Acme/1"},
		"X-Acme-Event": {"paid"}, "X_acme_tenant": {"7"}, "X-Acme-Signature": {"a", "b"}, "X-Acme-Topic": {"x", "y"}, "X-Acme-New": {"1", "1"},
	}
	if got := encode(t, acme, sent); !reflect.DeepEqual(got, known) {
		t.Errorf("of a known sender %q\nwant %q", got, known)
	}
	all := maps.Clone(known)
	delete(all, "X-Acme-New") // nobody has named it, and Connection has
	maps.Copy(all, http.Header{"X-Else": {"1"}, "X-Latin": {"caf\xe9"}, "X-Empty": {""}})
	if got := encode(t, anyone, sent); !reflect.DeepEqual(got, all) {
		t.Errorf("of one of whom nothing is known %q\nwant %q", got, all)
	}
	asked := maps.Clone(known)
	maps.Copy(asked, http.Header{"X-Else": {"1"}, "X-Hop": {"1"}})
	if got := encode(t, acme.And("x-else", "X-Ho*", "X-Acme-Token"), sent); !reflect.DeepEqual(got, asked) {
		t.Errorf("with what is asked for %q\nwant %q", got, asked)
	}
}

// TestSendersOfWhichNothingIsKnown: what senders that are described by their users document passes.
func TestSendersOfWhichNothingIsKnown(t *testing.T) {
	sent := http.Header{}
	for _, name := range []string{
		"X-Goog-Channel-ID", "X-Goog-Channel-Expiration", "X-Goog-Channel-Token", "X-Goog-Message-Number", "X-Goog-Resource-ID", "X-Goog-Resource-State", "X-Goog-Resource-URI", // Drive, Calendar
		"X-Goog-Pubsub-Message-Id", "X-Goog-Pubsub-Subscription-Name", "Ce-Id", "Ce-Type", "Ce-Source", "Aeg-Event-Type", "X-Event-Key", "X-Request-Id",
		"X-Okta-Verification-Challenge", "X-Contentful-Topic", "X-Gitea-Event", "X-Gitea-Delivery", "X-Netlify-Event", "X-Webhook-Id", "X-Amz-Firehose-Request-Id", "SOAPAction", "Signature", "Signature-Input", "Content-Digest",
	} {
		sent.Set(name, "1")
	}
	if got := encode(t, anyone, sent); !reflect.DeepEqual(got, sent) {
		t.Errorf("of %q only %q", sent, got)
	}
}

// TestSeveralValues: the application finds what was extracted, whichever of the lines it reads.
func TestSeveralValues(t *testing.T) {
	sent := http.Header{"X-Acme-Event": {"paid", "void"}, "X_acme_tenant": {"7", "7"}, "Content-Type": {"application/json", "text/plain"}}
	want := http.Header{"X_acme_tenant": {"7"}, "Content-Type": {"application/json"}}
	if got := encode(t, acme, sent); !reflect.DeepEqual(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	stored := http.Header{"Hookonce-Rank": {"a", "b"}}
	maps.Copy(stored, sent)
	want["Hookonce-Rank"] = []string{"a", "b"}
	(&Filter{Rule: acme}).trim(stored)
	if !reflect.DeepEqual(stored, want) {
		t.Errorf("delivered %q, want %q", stored, want)
	}
}

// TestAnAskedForAttackPasses: by its whole name, because somebody has written it down.
func TestAnAskedForAttackPasses(t *testing.T) {
	h := http.Header{"X-Real-Ip": {"192.0.2.1"}, "X-Original-Url": {"/admin"}}
	if got := encode(t, acme.And("X-Real-IP"), h); len(got) != 1 || got.Get("X-Real-Ip") == "" {
		t.Errorf("%q", got)
	}
}

func TestChoice(t *testing.T) {
	names := []string{"Content-Type", "User-Agent", "X-Acme-Event", "X-Acme-New", "X-Acme-Token", "X-Else", "X-Real-Ip", "Traceparent"}
	signed := func(name string) bool { return name == "X-Acme-Event" }
	for _, c := range []struct {
		name             string
		pass, drop, also []string
		signed           func(string) bool
		want             []string
	}{
		{"all", nil, nil, nil, nil, []string{"Content-Type", "User-Agent", "X-Acme-Event", "X-Acme-New"}},
		{"pass", []string{"x-acme-new"}, nil, nil, nil, []string{"Content-Type", "X-Acme-New"}},
		{"pass what the provider does not send", []string{"x-else", "X-Real-IP"}, nil, nil, nil, []string{"Content-Type", "X-Else", "X-Real-Ip"}},
		{"pass and also", []string{"x-acme-new"}, nil, []string{"X-Else", "X-Acme-E*"}, nil, []string{"Content-Type", "X-Acme-Event", "X-Acme-New", "X-Else"}},
		{"drop", nil, []string{"content-type", "X-Acme-Event"}, nil, nil, []string{"Content-Type", "User-Agent", "X-Acme-New"}},
		{"drop and also", nil, []string{"X-Else", "X-Acme-New"}, []string{"X-*"}, nil, []string{"Content-Type", "User-Agent", "X-Acme-Event"}},
		{"also", nil, nil, []string{"traceparent", "X-Acme-Token"}, nil, []string{"Content-Type", "User-Agent", "X-Acme-Event", "X-Acme-New", "Traceparent"}},
		{"signed", []string{"x-else"}, nil, nil, signed, []string{"Content-Type", "X-Acme-Event", "X-Else"}},
		{"signed though dropped", nil, []string{"X-Acme-Event", "X-Acme-New"}, nil, signed, []string{"Content-Type", "User-Agent", "X-Acme-Event"}},
	} {
		f := Filter{Rule: acme, Choice: NewChoice(c.pass, c.drop, c.also), Signed: c.signed}
		got := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !f.passes(name) })
		if slices.Sort(c.want); !slices.Equal(slices.Sorted(slices.Values(got)), c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// junk are headers of that size together, each with n bytes in its value.
func junk(prefix string, size, n int) http.Header {
	h := http.Header{}
	for i := 0; size > 0; i++ {
		name := prefix + strconv.Itoa(i)
		h[name] = []string{strings.Repeat("j", n)}
		size -= len(name) + n + len(": \r\n")
	}
	return h
}

// needed are what an application needs of a request.
func needed() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "X-Acme-Event": {"paid"}, "X-Acme-Signature": {strings.Repeat("s", 300)}, "X-Acme-Topic": {strings.Repeat("t", 3000)}}
}

// TestJunkIsBounded: what an event keeps has at most 8 KiB, whatever is sent with it, and what is named is never lost.
func TestJunkIsBounded(t *testing.T) {
	for name, extra := range map[string]http.Header{
		"one large":              junk("X-Acme-J", 1, 20_000),
		"one large, on no list":  junk("X-J", 1, 20_000),
		"many small":             junk("X-Acme-J", 20_000, 1),
		"many small, on no list": junk("X-J", 20_000, 1),
		"lines of one name":      {"X-Acme-J": slices.Repeat([]string{"j"}, 5000)},
		"a megabyte":             junk("X-Acme-J", 1<<20, 1000),
	} {
		for kind, r := range map[string]*Rule{"known": acme, "unknown": anyone} {
			sent := needed()
			maps.Copy(sent, extra)
			lines, err := r.Encode(sent)
			if err != nil || len(lines) > MaxBytes || bytes.Count(lines, []byte("\r\n")) > MaxLines {
				t.Fatalf("%s of an %s sender: %d bytes in %d lines, %v", name, kind, len(lines), bytes.Count(lines, []byte("\r\n")), err)
			}
			stored := maps.Clone(sent)
			(&Filter{Rule: r}).trim(stored)
			if kept := parse(t, lines); !reflect.DeepEqual(kept, stored) {
				t.Errorf("%s of an %s sender: %d headers are kept and %d delivered of what was stored before", name, kind, len(kept), len(stored))
			}
			for name, values := range needed() {
				if _, named := r.names[name]; named && !slices.Equal(stored[name], values) {
					t.Errorf("%s of an %s sender: %s is lost", extra, kind, name)
				}
			}
		}
	}
}

// TestOrderOfWhatGoes: what is on no list goes first, then what only begins like the provider's own, and the largest of each.
func TestOrderOfWhatGoes(t *testing.T) {
	r := NewRule(Spec{Once: []string{"X-Acme-Event"}}).And("X-Acme-*")
	h := http.Header{
		"X-Acme-Event": {strings.Repeat("e", 3000)},
		"X-Acme-A":     {strings.Repeat("a", 2500)}, "X-Acme-B": {strings.Repeat("b", 4000)},
		"X-Small": {strings.Repeat("s", 100)}, "X-Large": {strings.Repeat("l", 2600)},
	}
	got := slices.Sorted(maps.Keys(encode(t, r, h)))
	if want := []string{"X-Acme-A", "X-Acme-Event", "X-Small"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// TestTooLarge: an event is not stored without what an application needs, so the genuine one that comes later is.
func TestTooLarge(t *testing.T) {
	for name, h := range map[string]http.Header{
		"a signature":     {"X-Acme-Signature": {strings.Repeat("s", MaxBytes)}},
		"lines":           {"X-Acme-Signature": slices.Repeat([]string{""}, MaxLines+1)},
		"several":         {"X-Acme-Event": {strings.Repeat("e", MaxBytes/2)}, "Content-Type": {strings.Repeat("c", MaxBytes/2)}},
		"a user agent":    {"User-Agent": {strings.Repeat("u", 20_000)}},
		"what is asked":   {"X-Tenant": {strings.Repeat("t", 20_000)}},
		"what is on list": {"X-Acme-Topic": {strings.Repeat("t", 20_000)}},
	} {
		if lines, err := acme.And("X-Tenant").Encode(h); err != ErrTooLarge || lines != nil {
			t.Errorf("%s: %d bytes, %v", name, len(lines), err)
		}
		stored := maps.Clone(h)
		(&Filter{Rule: acme, Choice: NewChoice(nil, nil, []string{"X-Tenant"})}).trim(stored)
		if size := len(fmt.Sprint(stored)); size > MaxBytes {
			t.Errorf("%s: %d bytes are delivered of what was stored before", name, size)
		}
	}
	if _, err := acme.Encode(http.Header{"X-Acme-Signature": slices.Repeat([]string{""}, MaxLines)}); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for _, listed := range []string{"X-Tenant", "x-tenant", "X_Tenant", "X-Acme-*", "X-Real-IP", "Traceparent"} {
		if err := CheckPass(listed); err != nil {
			t.Errorf("%s: %v", listed, err)
		}
	}
	for listed, want := range map[string]string{
		"": "not the name", "*": "not the beginning", "a b": "not the name", "X-A:": "not the name", "X_*": "not the beginning", "X-*-Y": "", "Host": "connection", "te": "connection", "Hookonce-Key": "program",
		"hookonce-*": "program", "Idempotency-Key": "program", "Authorization": "credentials", "cookie": "credentials", "Proxy": "credentials", "Proxy-*": "never",
	} {
		if err := CheckPass(listed); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", listed, err)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("X-A", "1", "2")
	f.Add("Connection", "x-fixed", "")
	f.Add("X-A", "a\r\nB: c", "\x00")
	f.Add("a b", "x", "y")
	f.Add("X:A", "x", "y")
	f.Add("", "x", "y")
	f.Add("X-Acme-Else", "5", "6")
	f.Add("X_Acme_Event", "5", "6")
	f.Fuzz(func(t *testing.T, name, a, b string) {
		for _, r := range []*Rule{acme, anyone, nil, anyone.And("X-*")} {
			h := http.Header{textproto.CanonicalMIMEHeaderKey(name): {a, b}, "X-Acme-Event": {"1"}}
			lines, err := r.Encode(h)
			if err != nil {
				continue
			}
			if got := bytes.Count(lines, []byte("\r\n")); got != bytes.Count(lines, []byte("\n")) || got > 3 || len(lines) > MaxBytes {
				t.Fatalf("%q has %d lines", lines, got)
			}
			for line := range bytes.SplitAfterSeq(lines, []byte("\r\n")) {
				field, _, ok := bytes.Cut(line, []byte(": "))
				if name := string(field); len(line) > 0 && (!ok || never(name) || !plain(name) && r.class(name) != once) {
					t.Fatalf("line %q", line)
				}
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	h := http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"Acme/1"}, "Content-Length": {"1000"}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"},
		"X-Acme-Event": {"paid"}, "X-Acme-Signature": {strings.Repeat("s", 64)}, "X-Acme-New": {"1"}, "X-Request-Id": {"1"}, "X-Forwarded-For": {"192.0.2.1"},
	}
	for name, r := range map[string]*Rule{"known": acme, "unknown": anyone} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := r.Encode(h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
