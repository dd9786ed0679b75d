package provider

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// TestNoKeyIsEverInvented: a key that is missing, empty, of the wrong type or ambiguous is no key.
func TestNoKeyIsEverInvented(t *testing.T) {
	for _, body := range []string{
		`{}`, `[]`, `"evt_1"`, `7`, `null`, `[{"id":"evt_1"}]`,
		`{"id":""}`, `{"id":"  "}`, `{"id":"\t"}`, `{"id":null}`, `{"id":{}}`, `{"id":["a"]}`, `{"id":{"id":"a"}}`,
		`{"ID":"evt_1"}`, `{"data":{"id":"evt_1"}}`, `{"id ":"evt_1"}`,
		`{"id":"a","id":"b"}`, `{"id":"a","\u0069d":"b"}`, `{"id":1,"id":"1"}`, `{"id":"a","id":null}`,
		`{"id":"\ud800"}`, `{"id":"a\udfffb"}`, "{\"id\":\"a\xffb\"}",
	} {
		if ev := one(t, Stripe("fake"), signed(t, Stripe("fake"), body)); ev.Key != "" || ev.KeyOrigin != "" || ev.KeySigned {
			t.Errorf("%s: key %q from %q", body, ev.Key, ev.KeyOrigin)
		}
	}
}

// TestAmbiguityOnTheWay: of two objects of the same name, parsers take the first or the last.
func TestAmbiguityOnTheWay(t *testing.T) {
	p := HMAC(HMACConfig{Secrets: []string{"fake"}, Key: []spec.Value{"json:$.event.id"}})
	for body, want := range map[string]string{
		`{"event":{"id":"a"},"event":{}}`:                      "",
		`{"event":{},"event":{"id":"a"}}`:                      "",
		`{"event":{"id":"a"},"event":{"id":"b"}}`:              "",
		`{"event":{"id":"a"},"event":7,"event":{"id":"a"}}`:    "",
		`{"event":{"id":"a"},"event":{"id":"a"}}`:              "a",
		`{"event":{"id":"a"},"Event":{"id":"b"},"x":{"id":1}}`: "a",
	} {
		if key := one(t, p, signed(t, p, body)).Key; key != want {
			t.Errorf("%s: key %q, want %q", body, key, want)
		}
	}
}

func TestKeysThatAreKeys(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"evt_1"}`:                             "evt_1",
		` { "id" : "evt_1" } `:                       "evt_1",
		`{"\u0069d":"evt_1"}`:                        "evt_1",
		`{"id":"a\u0062c"}`:                          "abc",
		`{"id":"evt_1","id":"evt_1"}`:                "evt_1",
		`{"id":12345678901234567890123}`:             "12345678901234567890123",
		`{"id":1e3}`:                                 "1e3",
		`{"id":0}`:                                   "0",
		`{"id":true}`:                                "true",
		`{"id":"17:evt_1"}`:                          "8:17:evt_1", // as it is, it looks like joined parts
		`{"id":"` + strings.Repeat("x", 255) + `"}`:  strings.Repeat("x", 255),
		`{"id":"` + strings.Repeat("x", 256) + `"}`:  hookonce.NormalKey(strings.Repeat("x", 256)),
		`{"id":"a\u0000b"}`:                          hookonce.NormalKey("a\x00b"),
		`{"id":"sha256:1"}`:                          hookonce.NormalKey("sha256:1"),
		`{"id":"evt_1","data":{"id":"x"},"x":[{}]}`:  "evt_1",
		`{"a":{"id":"x"},"id":"evt_1","b":"\"id\""}`: "evt_1",
	} {
		ev := one(t, Stripe("fake"), signed(t, Stripe("fake"), body))
		if ev.Key != want || !ev.KeySigned || ev.KeyOrigin != "json:$.id" {
			t.Errorf("%q: key %q from %q, want %q", body, ev.Key, ev.KeyOrigin, want)
		}
		if err := (hookonce.Ref{Source: "s", Key: ev.Key}).Validate(); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// TestUnreadableBodies: what is signed but is not JSON passes through as one event, unkeyed if its key is in the body.
func TestUnreadableBodies(t *testing.T) {
	testskip.Race(t)
	deep := strings.Repeat("[", 2<<20)
	for _, body := range []string{"", " ", "hello", "{", `{"id":"a"`, `{"id":"a"}}`, `{"id":'a'}`, "\x00", `{"id":"a",}`, deep, `{"id":"a","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`} {
		p := Stripe("fake")
		d, err := p.Open(signed(t, p, body))
		if err != nil {
			t.Fatal(err)
		}
		if d.Unreadable == nil || len(d.Events) != 1 || d.Events[0].Key != "" || string(d.Events[0].Body) != body || len(d.Events[0].Digest) != 16 {
			t.Errorf("%.20q: %v, %d events", body, d.Unreadable, len(d.Events))
		}
	}
	wide := `{"id":"evt_1","x":[` + strings.Repeat(`{"s":"[[["},`, 5000) + `{}]}`
	if ev := one(t, Stripe("fake"), signed(t, Stripe("fake"), wide)); ev.Key != "evt_1" {
		t.Error("a wide document was taken for a deep one")
	}
}

// TestUnreadableBodiesKeepTheirHeader: what the header says of an event counts whatever its body is, and copies of it are
// copies. A key that is even in part, and even optionally, in the body is no key then.
func TestUnreadableBodiesKeepTheirHeader(t *testing.T) {
	hmac := func(key ...spec.Value) *spec.Provider {
		return HMAC(HMACConfig{Secrets: []string{"fake-secret"}, Key: key, Type: "json:$.type"})
	}
	github := []string{"X-GitHub-Delivery", "d-1", "X-GitHub-Event", "push"}
	shopify := []string{"X-Shopify-Event-Id", "e-1", "X-Shopify-Topic", "orders/create", "X-Shopify-Shop-Domain", "a.example", "X-Shopify-Webhook-Id", "w-1"}
	for name, c := range map[string]struct {
		p           *spec.Provider
		header      []string
		keyed       bool
		kind        string
		otherHeader []string // of another event
	}{
		"github":            {GitHub("fake-secret"), github, true, "push", []string{"X-GitHub-Delivery", "d-2", "X-GitHub-Event", "push"}},
		"github without id": {GitHub("fake-secret"), github[2:], false, "push", nil},
		"shopify":           {Shopify("fake-secret"), shopify, true, "orders/create", []string{"X-Shopify-Event-Id", "e-1", "X-Shopify-Topic", "orders/create", "X-Shopify-Shop-Domain", "a.example", "X-Shopify-Webhook-Id", "w-2"}},
		"header alone":      {hmac("header:X-Id"), []string{"X-Id", "1"}, true, "", []string{"X-Id", "2"}},
		"with the body":     {hmac("header:X-Id", "json:$.id"), []string{"X-Id", "1"}, false, "", nil},
		"optionally":        {hmac("header:X-Id", "json:$.id?"), []string{"X-Id", "1"}, false, "", nil},
		"with a form":       {hmac("header:X-Id", "form:id?"), []string{"X-Id", "1"}, false, "", nil},
		"with a hash of it": {hmac("header:X-Id", "hash:json:$.data?"), []string{"X-Id", "1"}, false, "", nil},
	} {
		for _, body := range []string{"<order/>", "", `{"id":`, `{"id":"a"}}`, "payload=%zz"} {
			d, err := c.p.Open(signed(t, c.p, body, c.header...))
			if err != nil || d.Unreadable == nil || len(d.Events) != 1 {
				t.Fatalf("%s: %q: %+v, %v", name, body, d, err)
			}
			ev := d.Events[0]
			if (ev.Key != "") != c.keyed || ev.Type != c.kind || string(ev.Body) != body || len(ev.Digest) != 16 || ev.Scope != "" || ev.Logical != "" || ev.Rank != (hookonce.Rank{}) {
				t.Errorf("%s: %q: key %q, type %q, %+v", name, body, ev.Key, ev.Type, ev)
			}
			if !c.keyed {
				continue
			}
			again, err := c.p.Open(signed(t, c.p, body, c.header...))
			if err != nil || again.Events[0].Key != ev.Key {
				t.Errorf("%s: a copy has the key %q, not %q; %v", name, again.Events[0].Key, ev.Key, err)
			}
			other, err := c.p.Open(signed(t, c.p, body, c.otherHeader...))
			if err != nil || other.Events[0].Key == ev.Key {
				t.Errorf("%s: another event has the same key %q; %v", name, ev.Key, err)
			}
			if readable, err := c.p.Open(signed(t, c.p, "{}", c.header...)); err != nil || readable.Events[0].Key != ev.Key || readable.Events[0].KeyOrigin != ev.KeyOrigin || readable.Events[0].KeySigned != ev.KeySigned {
				t.Errorf("%s: with a body that can be read the key is %+v, not %q; %v", name, readable, ev.Key, err)
			}
		}
	}
}

// TestBodyIsNotReadInVain: a key in a header needs no JSON.
func TestBodyIsNotReadInVain(t *testing.T) {
	p := HMAC(HMACConfig{Secrets: []string{"fake"}, Key: []spec.Value{"header:X-Event-Id"}, Type: "header:X-Event-Type"})
	d, err := p.Open(signed(t, p, "<order/>", "X-Event-Id", "7", "X-Event-Type", "order"))
	if err != nil || d.Unreadable != nil || d.Events[0].Key != "7" || d.Events[0].KeySigned || d.Events[0].Type != "order" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestCompositeKeysAreUnambiguous(t *testing.T) {
	p := HMAC(HMACConfig{Secrets: []string{"fake"}, Key: []spec.Value{"json:$.a", "json:$.b", "json:$.c?"}})
	seen := map[string]string{}
	for _, body := range []string{
		`{"a":"ab","b":"c"}`, `{"a":"a","b":"bc"}`, `{"a":"a","b":"b","c":"c"}`, `{"a":"a","b":"b"}`,
		`{"a":"1:a","b":"b"}`, `{"a":"a","b":"1:b1:c"}`, `{"a":"a1:b","b":"c"}`,
	} {
		key := one(t, p, signed(t, p, body)).Key
		if other, taken := seen[key]; taken || key == "" {
			t.Errorf("%s and %s share the key %q", body, other, key)
		}
		seen[key] = body
	}
	p2 := HMAC(HMACConfig{Secrets: []string{"fake"}, Key: []spec.Value{"json:$.a", "json:$.b?"}})
	alone, both := one(t, p2, signed(t, p2, `{"a":"1:a1:b"}`)), one(t, p2, signed(t, p2, `{"a":"a","b":"b"}`))
	if alone.Key == both.Key || alone.Key == "" {
		t.Errorf("with and without the optional part: both have the key %q", both.Key)
	}
	for _, body := range []string{`{"a":"a"}`, `{"b":"b","c":"c"}`, `{"a":"a","b":""}`} {
		if key := one(t, p, signed(t, p, body)).Key; key != "" {
			t.Errorf("%s: key %q from a rule that lacks a part", body, key)
		}
	}
}

func TestGitHub(t *testing.T) {
	p := GitHub("fake")
	ev := one(t, p, signed(t, p, `{"action":"opened","repository":{"id":7}}`, "X-GitHub-Delivery", "guid-1", "X-GitHub-Event", "issues"))
	if ev.Key != "guid-1" || ev.KeySigned || ev.KeyOrigin != "header:X-GitHub-Delivery" || ev.Type != "issues.opened" || ev.Resource != "7" {
		t.Errorf("%+v", ev)
	}
	if ev := one(t, p, signed(t, p, `{}`, "X-GitHub-Delivery", "guid-1", "X-GitHub-Event", "push")); ev.Type != "push" {
		t.Error(ev.Type)
	}
	if ev := one(t, p, signed(t, p, `{}`, "X-GitHub-Delivery", "guid-1", "X-GitHub-Delivery", "guid-2")); ev.Key != "" {
		t.Error("of two different delivery ids one was taken")
	}
	if p.Profile().MaxBody != 25<<20 {
		t.Error(p.Profile().MaxBody)
	}
}

// TestForms: GitHub and Slack can put the JSON into a form field.
func TestForms(t *testing.T) {
	form := "application/x-www-form-urlencoded; charset=utf-8"
	body := url.Values{"payload": {`{"action":"opened","type":"block_actions","team_id":"T1"}`}}.Encode()
	github := GitHub("fake")
	ev := one(t, github, signed(t, github, body, "Content-Type", form, "X-GitHub-Delivery", "g", "X-GitHub-Event", "issues"))
	if ev.Key != "g" || ev.Type != "issues.opened" {
		t.Errorf("%+v", ev)
	}
	slack := Slack("fake")
	if ev := one(t, slack, signed(t, slack, body, "Content-Type", form)); ev.Key != "" || ev.Type != "block_actions" || ev.Tenant != "T1" {
		t.Errorf("%+v", ev)
	}
	for body, readable := range map[string]bool{
		"command=%2Fpay&text=1001":                          true,
		`payload={"event_id":"a"}&payload={"event_id":"b"}`: true,
		"payload=nonsense":                                  false,
		"payload=%zz":                                       false,
		`{"event_id":"Ev1","type":"ignored"`:                true, // a form with a strange field, which is what its header says
	} {
		d, err := slack.Open(signed(t, slack, body, "Content-Type", form))
		if err != nil || d.Events[0].Key != "" || (d.Unreadable == nil) != readable {
			t.Errorf("%s: %+v, %v", body, d, err)
		}
	}
	// JSON under a form's content type is still JSON.
	if ev := one(t, slack, signed(t, slack, `{"event_id":"Ev1"}`, "Content-Type", form)); ev.Key != "Ev1" {
		t.Error(ev.Key)
	}
}

func TestShopify(t *testing.T) {
	p := Shopify("fake")
	base := []string{"X-Shopify-Shop-Domain", "a.myshopify.com", "X-Shopify-Topic", "orders/create"}
	open := func(more ...string) hookonce.Event {
		return one(t, p, signed(t, p, `{"id":1}`, append(append([]string(nil), base...), more...)...))
	}
	first := open("X-Shopify-Event-Id", "e", "X-Shopify-Webhook-Id", "w1")
	second := open("X-Shopify-Event-Id", "e", "X-Shopify-Webhook-Id", "w2")
	if first.Key == "" || first.Key != second.Key {
		t.Errorf("one event through two subscriptions: %q and %q", first.Key, second.Key)
	}
	if first.KeySigned || first.Tenant != "a.myshopify.com" || first.Type != "orders/create" || first.Resource != "1" {
		t.Errorf("%+v", first)
	}
	named := open("X-Shopify-Event-Id", "e", "X-Shopify-Name", "slim")
	fallback := open("X-Shopify-Webhook-Id", "e")
	keys := map[string]bool{first.Key: true, named.Key: true, fallback.Key: true}
	base[3] = "orders/paid"
	keys[open("X-Shopify-Event-Id", "e").Key] = true
	base[1] = "b.myshopify.com"
	keys[open("X-Shopify-Event-Id", "e").Key] = true
	if len(keys) != 5 || keys[""] {
		t.Errorf("events of different names, topics, shops share keys: %v", keys)
	}
	if ev := one(t, p, signed(t, p, `{}`, "X-Shopify-Event-Id", "e")); ev.Key != "" {
		t.Errorf("a key without shop and topic: %q", ev.Key)
	}
}

// TestShopifySubTopics: several kinds of metaobjects share a topic.
func TestShopifySubTopics(t *testing.T) {
	p := Shopify("fake")
	ev := one(t, p, signed(t, p, `{"id":1}`, "X-Shopify-Topic", "metaobjects/create", "X-Shopify-Sub-Topic", "type:lookbook"))
	if ev.Type != "metaobjects/create.type:lookbook" {
		t.Error(ev.Type)
	}
}

// TestShopifyEvents: the newer Events have the same headers without X-.
func TestShopifyEvents(t *testing.T) {
	p := Shopify("fake")
	req := signed(t, p, `{}`, "Shopify-Shop-Domain", "a", "Shopify-Topic", "t", "Shopify-Webhook-Id", "w")
	req.Header.Set("Shopify-Hmac-Sha256", req.Header.Get("X-Shopify-Hmac-Sha256"))
	req.Header.Del("X-Shopify-Hmac-Sha256")
	if ev := one(t, p, req); ev.Key == "" || ev.Tenant != "a" || ev.Type != "t" {
		t.Errorf("%+v", ev)
	}
}

func TestSlack(t *testing.T) {
	p := Slack("fake")
	ev := one(t, p, signed(t, p, `{"type":"event_callback","team_id":"T1","event_id":"Ev1","event_time":1531431954,"event":{"type":"message","subtype":"bot_message","channel":"C1"}}`))
	if ev.Key != "Ev1" || !ev.KeySigned || ev.Type != "message.bot_message" || ev.Tenant != "T1" || ev.Resource != "C1" || ev.Time.Unix() != 1531431954 {
		t.Errorf("%+v", ev)
	}
	limited := func(team, minute string) string {
		return one(t, p, signed(t, p, `{"type":"app_rate_limited","team_id":"`+team+`","minute_rate_limited":`+minute+`}`)).Key
	}
	if a, b, c := limited("T1", "1518467820"), limited("T1", "1518467880"), limited("T2", "1518467820"); a == "" || a == b || a == c || a != limited("T1", "1518467820") {
		t.Errorf("rate limit keys %q %q %q", a, b, c)
	}
	// Twenty events with an empty id are twenty events.
	for range 20 {
		if ev := one(t, p, signed(t, p, `{"type":"event_callback","event_id":"","team_id":"T1"}`)); ev.Key != "" {
			t.Fatalf("an empty id became the key %q", ev.Key)
		}
	}
}

func TestSlackHandshake(t *testing.T) {
	p := Slack("fake")
	body := `{"type":"url_verification","challenge":"<script>alert(1)</script>"}`
	req := signed(t, p, body)
	d, err := p.Open(req)
	if err != nil || len(d.Events) != 0 || d.Handshake == nil {
		t.Fatalf("%+v, %v", d, err)
	}
	if d.Handshake.Status != 200 || !strings.HasPrefix(d.Handshake.ContentType, "text/plain") || string(d.Handshake.Body) != "<script>alert(1)</script>" {
		t.Errorf("%+v", d.Handshake)
	}
	req.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64))
	reason(t, p, req)
	for _, body := range []string{
		`{"type":"url_verification"}`,
		`{"type":"url_verification","challenge":""}`,
		`{"type":"url_verification","challenge":{"a":1}}`,
		`{"type":"url_verification","challenge":"` + strings.Repeat("x", 1025) + `"}`,
		`{"type":"event_callback","challenge":"x"}`,
		"{\"type\":\"url_verification\",\"challenge\":\"\xff\"}",
	} {
		if ev := one(t, p, signed(t, p, body)); ev.Key != "" {
			t.Error(ev.Key)
		}
	}
	github := GitHub("fake")
	if d, _ := github.Open(signed(t, github, body)); d.Handshake != nil {
		t.Error("a provider without that handshake answered it")
	}
}

// TestStripeDigest: pending_webhooks counts down between attempts, everything that matters does not.
func TestStripeDigest(t *testing.T) {
	p := Stripe("fake")
	digest := func(body string) []byte { return one(t, p, signed(t, p, body)).Digest }
	base := digest(`{"id":"e","type":"a","created":1,"data":{"object":{"id":"x"}},"pending_webhooks":2}`)
	if len(base) != 16 || !bytes.Equal(base, digest(`{"id":"e","type":"a","created":1,"data":{"object":{"id":"x"}},"pending_webhooks":1}`)) {
		t.Error("a retry with another pending_webhooks has another digest")
	}
	for _, body := range []string{
		`{"id":"e","type":"b","created":1,"data":{"object":{"id":"x"}},"pending_webhooks":2}`,
		`{"id":"e","type":"a","created":2,"data":{"object":{"id":"x"}},"pending_webhooks":2}`,
		`{"id":"e","type":"a","created":1,"data":{"object":{"id":"y"}},"pending_webhooks":2}`,
		`{"id":"e","type":"a","created":1,"pending_webhooks":2}`,
		`{"id":"e","type":"a","created":1,"account":"acct_1","data":{"object":{"id":"x"}},"pending_webhooks":2}`,
	} {
		if bytes.Equal(base, digest(body)) {
			t.Errorf("other content, same digest: %s", body)
		}
	}
	if bytes.Equal(digest(`{"id":"e","x":1}`), digest(`{"id":"e","x":2}`)) {
		t.Error("without any of the parts the whole body counts")
	}
	if bytes.Equal(digest(`{"type":"a","data":1,"data":2}`), digest(`{"type":"a","data":1,"data":3}`)) {
		t.Error("with an ambiguous part the whole body counts")
	}
	if github := GitHub("fake"); bytes.Equal(one(t, github, signed(t, github, `{"a":1}`)).Digest, one(t, github, signed(t, github, `{"a":2}`)).Digest) {
		t.Error("the whole body counts by default")
	}
}

func TestStripeFields(t *testing.T) {
	p := Stripe("fake")
	ev := one(t, p, signed(t, p, `{"id":"evt_1","type":"charge.refunded","created":1700000000,"account":"acct_1","data":{"object":{"id":"ch_1"}}}`))
	if ev.Type != "charge.refunded" || ev.Time.Unix() != 1700000000 || ev.Tenant != "acct_1" || ev.Resource != "ch_1" || ev.AttemptID != "" || ev.Provider != "stripe" {
		t.Errorf("%+v", ev)
	}
	thin := one(t, p, signed(t, p, `{"id":"evt_2","object":"v2.core.event","type":"v1.billing.meter","created":"2024-09-26T17:46:22.134Z","related_object":{"id":"mtr_1"}}`))
	if thin.Key != "evt_2" || thin.Resource != "mtr_1" || thin.Time.UnixMilli() != 1727372782134 {
		t.Errorf("%+v", thin)
	}
}

func TestPaddleDigestAndDelivery(t *testing.T) {
	p := Paddle("fake")
	a := one(t, p, signed(t, p, `{"event_id":"e","notification_id":"n1","event_type":"t","occurred_at":"2024-03-20T10:07:35.590857Z","data":{"id":"x"}}`))
	b := one(t, p, signed(t, p, `{"event_id":"e","notification_id":"n2","event_type":"t","occurred_at":"2024-03-20T10:07:35.590857Z","data":{"id":"x"}}`))
	if a.Key != "e" || !bytes.Equal(a.Digest, b.Digest) || a.AttemptID != "n1" || a.Time.Year() != 2024 {
		t.Errorf("%+v %+v", a, b)
	}
}

// TestLabelsAreHarmless: types and the like end up in logs, headers and databases.
func TestLabelsAreHarmless(t *testing.T) {
	p := Stripe("fake")
	for _, text := range []string{`a\r\nX-Evil: 1`, `\u0000`, `\u001b[31m`, strings.Repeat("é", 300), strings.Repeat("x", 254) + "é", "\xff\xfe", `\ud800`} {
		ev := one(t, p, signed(t, p, `{"id":"1","type":"`+text+`","account":"`+text+`"}`))
		for _, got := range []string{ev.Type, ev.Tenant} {
			if len(got) > 255 || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00\x1b") {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

// TestTimesThatAreNone: a time that cannot be read, or is absurd, is no time or a bounded one.
func TestTimesThatAreNone(t *testing.T) {
	p := Stripe("fake")
	for created, want := range map[string]time.Time{
		`null`: {}, `""`: {}, `-5`: {}, `1.`: {}, `1.5`: time.Unix(1, 0), `{}`: {}, `"yesterday"`: {},
		`99999999999999999999`:        time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		`"0001-01-01T00:00:00Z"`:      time.Unix(0, 0),
		`"2024-01-01T00:00:00+01:00"`: time.Date(2023, 12, 31, 23, 0, 0, 0, time.UTC),
	} {
		if ev := one(t, p, signed(t, p, `{"id":"1","created":`+created+`}`)); !ev.Time.Equal(want) {
			t.Errorf("%s: %v", created, ev.Time)
		}
	}
}

// TestEventsDoNotPinBodies: keys live longer than bodies; they must be copies. Overwriting the body
// after the fact must leave the event's strings alone.
func TestEventsDoNotPinBodies(t *testing.T) {
	p := Stripe("fake")
	req := signed(t, p, `{"id":"evt_1","type":"charge.refunded","account":"acct_1","data":{"object":{"id":"ch_1"}}}`)
	ev := one(t, p, req)
	clear(req.Body)
	if ev.Key != "evt_1" || ev.Type != "charge.refunded" || ev.Tenant != "acct_1" || ev.Resource != "ch_1" {
		t.Errorf("%+v", ev)
	}
}
