package provider

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"testing"

	"github.com/hookonce/hookonce"
)

// distinct opens every body and expects a key of its own for each; the same body again has the same.
func distinct(t *testing.T, open func(body string) hookonce.Event, bodies ...string) {
	t.Helper()
	seen := map[string]string{}
	for _, body := range bodies {
		ev := open(body)
		if before, ok := seen[ev.Key]; ok || ev.Key == "" {
			t.Errorf("%s\nhas the key %q of\n%s", body, ev.Key, before)
		}
		if again := open(body); again.Key != ev.Key {
			t.Errorf("%s: the copy has the key %q and not %q", body, again.Key, ev.Key)
		}
		seen[ev.Key] = body
	}
}

// Two subscribed users get the same post, and both copies are genuine; a deletion has the post's id.
func TestXActivities(t *testing.T) {
	p := fake(t, "x")
	open := func(body string) hookonce.Event { return one(t, p, signed(t, p, body)) }
	distinct(t, open,
		`{"for_user_id":"1","tweet_create_events":[{"id_str":"9","text":"hi"}]}`,
		`{"for_user_id":"2","tweet_create_events":[{"id_str":"9","text":"hi"}]}`,
		`{"for_user_id":"1","tweet_delete_events":[{"status":{"id":"9","user_id":"1"},"timestamp_ms":"1770091506000"}]}`,
		`{"for_user_id":"1","favorite_events":[{"id":"a1","favorited_status":{"id_str":"9"},"timestamp_ms":1770091506000}]}`,
		`{"for_user_id":"1","direct_message_events":[{"type":"message_create","id":"9","created_timestamp":"1770091506000"}]}`,
		`{"for_user_id":"1","follow_events":[{"type":"follow","created_timestamp":"1770091506000","source":{"id":"5"},"target":{"id":"1"}}]}`,
		`{"for_user_id":"1","follow_events":[{"type":"follow","created_timestamp":"1770091507000","source":{"id":"5"},"target":{"id":"1"}}]}`,
	)
	for _, body := range []string{
		`{"tweet_create_events":[{"id_str":"9"}]}`, // nobody's copy
		`{"data":{"event_uuid":"1","event_type":"post.create","filter":{"user_id":"1"},"payload":{}}}`,
		`{"for_user_id":"1","direct_message_indicate_typing_events":[{"created_timestamp":"1","sender_id":"5"}]}`,
	} {
		if ev := open(body); ev.Key != "" {
			t.Errorf("%s has the key %q", body, ev.Key)
		}
	}
	if events := all(t, p, signed(t, p, `{"for_user_id":"1","tweet_create_events":[{"id_str":"8"},{"id_str":"9"}]}`)); len(events) != 2 {
		t.Errorf("%d events", len(events))
	}
}

// The body lists accounts only: the next change of the same accounts looks the same.
func TestDropboxIsNeverACopy(t *testing.T) {
	p := fake(t, "dropbox")
	for range 2 {
		if ev := one(t, p, signed(t, p, `{"list_folder":{"accounts":["dbid:1"]}}`)); ev.Key != "" {
			t.Errorf("key %q", ev.Key)
		}
	}
}

func TestTrelloActionOfTwoModels(t *testing.T) {
	p := fake(t, "trello")
	open := func(body string) hookonce.Event { return one(t, p, signed(t, p, body)) }
	distinct(t, open,
		`{"action":{"id":"a","type":"updateCard"},"model":{"id":"board"}}`,
		`{"action":{"id":"a","type":"updateCard"},"model":{"id":"list"}}`,
		`{"action":{"id":"b","type":"updateCard"},"model":{"id":"board"}}`,
	)
	req := signed(t, p, `{"action":{"id":"a"},"model":{"id":"board"}}`)
	if why := reason(t, Trello("https://shop.example/other", secretFor(p.Spec())), req); why.Reason != hookonce.ReasonSignatureMismatch {
		t.Errorf("another URL: %v", why)
	}
}

func TestZoomEventsOfOneMeeting(t *testing.T) {
	p := fake(t, "zoom")
	open := func(body string) hookonce.Event { return one(t, p, signed(t, p, body)) }
	distinct(t, open,
		`{"event":"meeting.started","event_ts":1770091506000,"payload":{"object":{"id":"1"}}}`,
		`{"event":"meeting.ended","event_ts":1770091506000,"payload":{"object":{"id":"1"}}}`,
		`{"event":"meeting.started","event_ts":1770091506001,"payload":{"object":{"id":"1"}}}`,
		`{"event":"meeting.started","event_ts":1770091506000,"payload":{"object":{"id":"2"}}}`,
	)
}

// discordRequest signs a body as Discord does.
func discordRequest(key ed25519.PrivateKey, body string) *hookonce.Request {
	const sent = "1770091506"
	return &hookonce.Request{Method: "POST", Body: []byte(body), Now: now, Header: http.Header{
		"X-Signature-Timestamp": {sent},
		"X-Signature-Ed25519":   {hex.EncodeToString(ed25519.Sign(key, []byte(sent+body)))},
	}}
}

func newEd25519(t testing.TB) (public string, private ed25519.PrivateKey) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(pub), key
}

func TestDiscordEventsOfOneMoment(t *testing.T) {
	public, key := newEd25519(t)
	p := Discord(public)
	open := func(body string) hookonce.Event { return one(t, p, discordRequest(key, body)) }
	distinct(t, open,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-02-03T04:05:06.1","data":{"id":"1"}}}`,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-02-03T04:05:06.1","data":{"id":"2"}}}`,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_DELETE","timestamp":"2026-02-03T04:05:06.1","data":{"id":"1"}}}`,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-02-03T04:05:06.1"}}`,
	)
}

// Discord sends wrong signatures on purpose and wants 401.
func TestDiscordProbesGet401(t *testing.T) {
	public, key := newEd25519(t)
	for _, p := range []interface {
		Open(*hookonce.Request) (*hookonce.Verified, error)
		Profile() hookonce.Profile
	}{Discord(public), DiscordInteractions(public)} {
		for _, body := range []string{`{"type":0}`, `{"type":1}`, `{"type":1,"event":{}}`} {
			genuine := discordRequest(key, body)
			if _, err := p.Open(genuine); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"X-Signature-Timestamp", "X-Signature-Ed25519"} {
				probe := *genuine
				probe.Header = genuine.Header.Clone()
				probe.Header.Set(name, "00"+genuine.Header.Get(name)[2:])
				if d, err := p.Open(&probe); err == nil {
					t.Errorf("%s: accepted with another %s: %+v", body, name, d)
				}
				probe.Header.Del(name)
				if d, err := p.Open(&probe); err == nil {
					t.Errorf("%s: accepted without %s: %+v", body, name, d)
				}
			}
		}
		if rejected := p.Profile().Rejected; rejected != http.StatusUnauthorized {
			t.Errorf("a wrong signature is answered with %d", rejected)
		}
	}
}

// The id of the subscription is the same for all of its events.
func TestTwitchEventsOfOneSubscription(t *testing.T) {
	p := fake(t, "twitch")
	body := `{"subscription":{"id":"s","type":"stream.online"},"event":{}}`
	keys := map[string]bool{}
	for _, id := range []string{"m1", "m2"} {
		req := signed(t, p, body, "Twitch-Eventsub-Message-Type", "notification")
		req.Header.Set("Twitch-Eventsub-Message-Id", id)
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		ev := one(t, p, req)
		keys[ev.Key] = true
		if !ev.KeySigned || ev.Type != "stream.online" {
			t.Errorf("got %+v", ev)
		}
	}
	if len(keys) != 2 {
		t.Errorf("keys %v", keys)
	}
	req := signed(t, p, body)
	req.Header.Set("Twitch-Eventsub-Message-Id", "m3")
	reason(t, p, req)
	revoked := signed(t, p, `{"subscription":{"id":"s","status":"authorization_revoked","type":"stream.online"}}`, "Twitch-Eventsub-Message-Type", "revocation")
	if ev := one(t, p, revoked); ev.Key == "" {
		t.Error("a revocation is an event like any other")
	}
}

// The delivery id is made of the webhook and the second.
func TestWooCommerceOrdersOfOneSecond(t *testing.T) {
	p := fake(t, "woocommerce")
	send := func(topic, delivery, body string) hookonce.Event {
		return one(t, p, signed(t, p, body, "X-WC-Webhook-Topic", topic, "X-WC-Webhook-Source", "https://shop.example/", "X-WC-Webhook-Delivery-ID", delivery, "X-WC-Webhook-ID", "1"))
	}
	open := func(body string) hookonce.Event { return send("order.updated", "d", body) }
	distinct(t, open,
		`{"id":1,"status":"processing","date_modified_gmt":"2026-02-03T04:05:06"}`,
		`{"id":2,"status":"processing","date_modified_gmt":"2026-02-03T04:05:06"}`,
		`{"id":1,"status":"completed","date_modified_gmt":"2026-02-03T04:05:06"}`, // twice in one second
		`{"id":1,"status":"completed","date_modified_gmt":"2026-02-03T04:05:07"}`,
	)
	body := `{"id":1,"date_modified_gmt":"2026-02-03T04:05:06"}`
	if send("order.updated", "d1", body).Key != send("order.updated", "d2", body).Key {
		t.Error("a second run has another key")
	}
	if send("order.updated", "d", body).Key == send("order.restored", "d", body).Key {
		t.Error("two topics have one key")
	}
	// Deleted, restored and deleted again.
	if ev := send("order.deleted", "d", `{"id":1}`); ev.Key != "" {
		t.Errorf("a deletion has the key %q", ev.Key)
	}
}
