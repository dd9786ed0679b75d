package notify_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/notify"
	"github.com/hookonce/hookonce/provider"
)

var at = time.Date(2026, 11, 23, 2, 14, 0, 0, time.UTC)

func message() *notify.Message {
	return &notify.Message{
		Key: "failing/ledger#3", Thread: "failing/ledger", State: notify.Firing, Severity: "page", Title: "PAGE ledger: 500 Internal Server Error",
		Text: "PAGE ledger: 500 Internal Server Error\n\nledger has been failing since 02:14:00Z.\n.\nNext: hookonce doctor\n", Link: "https://hooks.internal/", At: at,
		Alerts: []notify.Alert{
			{Fingerprint: "failing/ledger", Rule: "failing", Subject: "ledger", Severity: "page", State: notify.Firing, Headline: "ledger has been failing.", Since: at, Count: 1204, Event: "924305118331207681", Command: "hookonce doctor"},
			{Fingerprint: "failing/mail", Rule: "failing", Subject: "mail", Severity: "page", State: notify.Resolved, Headline: "mail was failing.", Since: at},
		},
	}
}

// channel returns one whose requests and connections go where they are meant to go.
func channel(t *testing.T, address string, transport http.RoundTripper, secrets ...string) *notify.Channel {
	t.Helper()
	return channels(t, address, transport, secrets...)[0]
}

// channels returns all that an address names.
func channels(t *testing.T, address string, transport http.RoundTripper, secrets ...string) []*notify.Channel {
	t.Helper()
	all, err := notify.New(notify.Config{Name: "oncall", Address: address, Secrets: secrets}, notify.Options{Transport: transport, Dial: new(net.Dialer).DialContext})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// whole is a secret in the form of Standard Webhooks.
const whole = "whsec_ZmFrZS1mYWtlLWZha2UtZmFrZS1mYWtl"

// A webhook is one that our own verifier takes, and has the same identifier whenever it is sent again.
func TestWebhookIsVerifiedByOurs(t *testing.T) {
	verifier := provider.Standard(whole)
	var keys []string
	var got notify.Body
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d, err := verifier.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()})
		if err != nil {
			t.Error(err)
			return
		}
		keys = append(keys, d.Events[0].Key+" "+r.Header.Get("Idempotency-Key")+" "+d.Events[0].Type)
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thank you")
	}))
	defer server.Close()
	c := channel(t, server.URL+"/hooks?token=fake-token-of-a-hook", http.DefaultTransport, whole)
	for range 2 {
		answer, err := c.Send(t.Context(), message())
		if err != nil || answer != "202 Accepted: thank you" {
			t.Errorf("%q, %v", answer, err)
		}
	}
	if len(keys) != 2 || keys[0] != keys[1] || !strings.HasPrefix(keys[0], "msg_") || !strings.HasSuffix(keys[0], " alert.firing") {
		t.Errorf("keys %q", keys)
	}
	if len(got.Data.Alerts) != 2 || got.Data.Alerts[0] != message().Alerts[0] || got.Data.Text != message().Text {
		t.Errorf("it got %+v", got)
	}
	other := message()
	other.Key = "failing/ledger#4"
	if _, err := c.Send(t.Context(), other); err != nil || keys[2] == keys[0] {
		t.Errorf("another message has the identifier of the first: %q, %v", keys, err)
	}
}

// PagerDuty has one incident for each alert, whose key is its fingerprint.
func TestPagerHasAnIncidentForEachAlert(t *testing.T) {
	var mu sync.Mutex
	var bodies []map[string]any
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v2/enqueue" {
			t.Errorf("%v of %s", err, r.URL)
		}
		mu.Lock()
		bodies = append(bodies, body)
		mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"success","message":"Event processed"}`)
	}))
	defer server.Close()
	key := strings.Repeat("0f", 16)
	c := channel(t, strings.Replace(server.URL, "https", "pagerduty", 1)+"/"+key, server.Client().Transport)
	if _, err := c.Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 {
		t.Fatalf("%d events", len(bodies))
	}
	slices.SortFunc(bodies, func(a, b map[string]any) int {
		return strings.Compare(a["dedup_key"].(string), b["dedup_key"].(string))
	})
	trigger, resolve := bodies[0], bodies[1]
	tried := &notify.Message{Key: "test", State: notify.Test, At: at, Alerts: []notify.Alert{{Fingerprint: "test/oncall", Severity: "info", State: notify.Test, Headline: "Somebody tries.", Since: at}}}
	if _, err := c.Send(t.Context(), tried); err != nil || len(bodies) != 4 || bodies[2]["event_action"] != "trigger" || bodies[3]["event_action"] != "resolve" || bodies[2]["dedup_key"] != bodies[3]["dedup_key"] {
		t.Errorf("a test: %v, %v", bodies[2:], err)
	}
	named := message()
	named.Alerts[0].Installation, named.Alerts[0].Fingerprint = "eu-west", "eu-west:failing/ledger"
	if _, err := c.Send(t.Context(), named); err != nil || !slices.ContainsFunc(bodies[4:], func(b map[string]any) bool {
		p, _ := b["payload"].(map[string]any)
		return b["dedup_key"] == "hookonce:eu-west:failing/ledger" && p["source"] == "eu-west"
	}) {
		t.Errorf("of an installation with a name: %v, %v", bodies[4:], err)
	}
	payload := trigger["payload"].(map[string]any)
	for _, is := range []struct{ got, want any }{
		{trigger["event_action"], "trigger"}, {trigger["routing_key"], key}, {trigger["dedup_key"], "hookonce:failing/ledger"},
		{payload["severity"], "critical"}, {payload["summary"], "ledger has been failing."}, {payload["component"], "ledger"}, {payload["source"], "hookonce"},
		{payload["custom_details"].(map[string]any)["command"], "hookonce doctor"},
		{resolve["event_action"], "resolve"}, {resolve["dedup_key"], "hookonce:failing/mail"},
	} {
		if is.got != is.want {
			t.Errorf("%v, want %v", is.got, is.want)
		}
	}
}

// Opsgenie has one alert for each alert, whose alias is the same from the beginning to the end, and
// which is closed when it is over: to open it once more would page. A ticket that becomes a page is
// another one there, or it would only be counted. What it would refuse is shortened.
func TestOpsgenieHasAnAlertForEachAlert(t *testing.T) {
	type request struct {
		path string
		body map[string]any
	}
	var mu sync.Mutex
	var asked []request
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := request{path: r.URL.String()}
		if err := json.NewDecoder(r.Body).Decode(&got.body); err != nil || r.Method != http.MethodPost || r.Header.Get("Authorization") != "GenieKey fake-key-of-opsgenie" {
			t.Errorf("%s %s, %v, %v", r.Method, r.URL, r.Header, err)
		}
		mu.Lock()
		asked = append(asked, got)
		mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"result":"Request will be processed","took":0.1,"requestId":"f"}`)
	}))
	defer server.Close()
	address := strings.Replace(server.URL, "https", "opsgenie", 1) + "/fake-key-of-opsgenie?tags=payments&alias=one"
	c, severity := channel(t, address+"&priority=P2", server.Client().Transport), "page"
	send := func(state notify.State, fingerprints ...string) []request {
		t.Helper()
		m := message()
		m.State, m.Alerts, m.Text, asked = state, nil, m.Text+strings.Repeat("~", 20_000), nil
		for _, f := range fingerprints {
			m.Alerts = append(m.Alerts, notify.Alert{Fingerprint: f, Subject: "ledger", Severity: severity, State: state, Headline: "it fails" + strings.Repeat("é", 100)})
		}
		if _, err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(asked, func(a, b request) int {
			return cmp.Or(strings.Compare(fmt.Sprint(a.body["alias"]), fmt.Sprint(b.body["alias"])), strings.Compare(a.path, b.path))
		})
		return asked
	}
	opened := send(notify.Firing, "failing/ledger", "failing/mail")
	if len(opened) != 2 || opened[0].path != "/v2/alerts" || opened[1].path != "/v2/alerts" || opened[0].body["alias"] == opened[1].body["alias"] {
		t.Fatalf("two alerts are %v", opened)
	}
	body := opened[0].body
	if text := body["description"].(string); body["priority"] != "P2" || fmt.Sprint(body["tags"]) != "[payments]" || body["source"] != "hookonce" || body["entity"] != "ledger" ||
		len(body["message"].(string)) > 130 || len(text) > 15_000 || !strings.HasSuffix(text, "\nhttps://hooks.internal/") {
		t.Errorf("it is opened as %v", body)
	}
	again := send(notify.Repeat, "failing/ledger")
	alias, _ := again[0].body["alias"].(string)
	if alias != opened[0].body["alias"] && alias != opened[1].body["alias"] {
		t.Errorf("told again, it has the alias %q", alias)
	}
	// Gateways of different versions close what each other opened.
	if want := fmt.Sprintf("hookonce-%x", sha256.Sum256([]byte("failing/ledger"))); alias != want {
		t.Errorf("a page has the alias %s, want %s", alias, want)
	}
	c = channel(t, address, server.Client().Transport) // which says no priority
	if again = send(notify.Firing, "failing/ledger"); again[0].body["alias"] != alias || again[0].body["priority"] != "P1" {
		t.Errorf("a page is opened as %v", again)
	}
	severity = "ticket"
	ticket := send(notify.Firing, "failing/ledger")[0].body
	if ticket["alias"] == alias || ticket["priority"] != "P3" {
		t.Errorf("a ticket is opened as %v, and the page that it becomes as %s", ticket, alias)
	}
	want := []string{"/v2/alerts/" + alias + "/close?identifierType=alias", fmt.Sprintf("/v2/alerts/%s/close?identifierType=alias", ticket["alias"])}
	slices.Sort(want)
	closed := send(notify.Resolved, "failing/ledger")
	if len(closed) != 2 || closed[0].path != want[0] || closed[1].path != want[1] || closed[0].body["alias"] != nil || closed[0].body["message"] != nil {
		t.Errorf("that it is over is told by %v, want %q", closed, want)
	}
	severity = "info"
	var paths []string
	for _, r := range send(notify.Test, "test/oncall") {
		paths = append(paths, r.path)
	}
	slices.Sort(paths)
	if len(paths) != 3 || paths[0] != "/v2/alerts" || !strings.HasSuffix(paths[1], "/close?identifierType=alias") || !strings.HasSuffix(paths[2], "/close?identifierType=alias") {
		t.Errorf("a test asks for %v", paths)
	}
}

// What PagerDuty would refuse, so that nobody is paged, is shortened: a headline, and a fingerprint, which still tells alerts apart.
// A page alone is critical.
func TestPagerTakesAllOfIt(t *testing.T) {
	type incident struct {
		Key     string `json:"dedup_key"`
		Payload struct{ Summary, Severity string }
	}
	paged := func(a notify.Alert) (in incident) {
		t.Helper()
		network := &repeater{fails: "takes"}
		c := channel(t, "pagerduty://events.pagerduty.com/"+strings.Repeat("0f", 16), network)
		if _, err := c.Send(t.Context(), &notify.Message{Key: "k", State: notify.Firing, At: at, Alerts: []notify.Alert{a}}); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(network.asked[0]), &in); err != nil {
			t.Fatal(err)
		}
		return in
	}
	const most = 1024
	for headline, want := range map[string]string{
		strings.Repeat("x", most):                            strings.Repeat("x", most),
		strings.Repeat("x", most+1):                          strings.Repeat("x", most-3) + "…",
		strings.Repeat("x", most-4) + strings.Repeat("é", 9): strings.Repeat("x", most-4) + "…",
	} {
		if got := paged(notify.Alert{Headline: headline}).Payload.Summary; got != want {
			t.Errorf("of %d bytes it says %d: %q", len(headline), len(got), got)
		}
	}
	long := strings.Repeat("x", 300)
	if one, again, other := paged(notify.Alert{Fingerprint: long}), paged(notify.Alert{Fingerprint: long}), paged(notify.Alert{Fingerprint: long + "y"}); len(one.Key) > 255 || one.Key != again.Key || one.Key == other.Key {
		t.Errorf("the keys are %q, again %q, and of another alert %q", one.Key, again.Key, other.Key)
	}
	for severity, want := range map[string]string{"page": "critical", "ticket": "warning", "info": "info"} {
		if got := paged(notify.Alert{Severity: severity}).Payload.Severity; got != want {
			t.Errorf("a %s is %s, want %s", severity, got, want)
		}
	}
}

// A text that is longer than Telegram takes is cut, so that the rest arrives, with where to read it.
func TestTelegramTakesAllOfIt(t *testing.T) {
	network := &repeater{fails: "takes"}
	c := channel(t, "telegram://110201543:fakeTelegramTokenfakeTelegramToken1@telegram?chats=@one", network)
	long := message()
	long.Text = strings.Repeat("é", 5000)
	if _, err := c.Send(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Chat string `json:"chat_id"`
		Text string
	}
	if err := json.Unmarshal([]byte(network.asked[0]), &got); err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCountInString(got.Text); got.Chat != "@one" || n > 4096 || !strings.HasSuffix(got.Text, "é…\n"+long.Link) {
		t.Errorf("%s gets %d characters, %q", got.Chat, n, got.Text[max(0, len(got.Text)-40):])
	}
}

// Each chat of Telegram is a channel of its own: one that refuses a message, because the bot was removed from it, say, keeps it
// from no other one, nor has it told again.
func TestEachTelegramChatIsTold(t *testing.T) {
	all := channels(t, "telegram://110201543:fakeTelegramTokenfakeTelegramToken1@telegram?chats=@one,@two,@three", &repeater{fails: "takes", refused: "@two"})
	for i, name := range []string{"oncall", "oncall.2", "oncall.3"} {
		if _, err := all[i].Send(t.Context(), message()); all[i].Name() != name || (err != nil) != (i == 1) {
			t.Errorf("%s: %v", all[i].Name(), err)
		}
	}
}

// A receiver whose address has a user and a password is shown them, and nobody else is.
func TestReceiverWithAPassword(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if asked = append(asked, r.Method+" "+r.URL.Path); user != "hookonce" || password != "hunter2/hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	address := strings.Replace(server.URL, "http://", "http://hookonce:hunter2%2Fhunter2@", 1) + "/in"
	if answer, err := channel(t, address, http.DefaultTransport, whole).Send(t.Context(), message()); err != nil || strings.Contains(answer, "hunter2") {
		t.Errorf("a webhook: %q, %v", answer, err)
	}
	beat, err := notify.NewHeartbeat(address, notify.Options{Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	if err := beat.Beat(t.Context()); err != nil {
		t.Errorf("a heartbeat: %v", err)
	}
	if want := []string{"POST /in", "GET /in"}; !slices.Equal(asked, want) {
		t.Errorf("it was asked %q, want %q", asked, want)
	}
}

// A library that panics at what a receiver says costs its message, and not the gateway.
func TestPanicsAreErrors(t *testing.T) {
	c := channel(t, "https://alerts.internal/", panics{}, whole)
	if _, err := c.Send(t.Context(), message()); err == nil || !strings.Contains(err.Error(), "at the disco") {
		t.Errorf("%v", err)
	}
}

type panics struct{}

func (panics) RoundTrip(*http.Request) (*http.Response, error) { panic("at the disco") }

// unhurried stands for an API that takes a second for each request, and answers the third with an error if it is told to.
type unhurried struct {
	mu      sync.Mutex
	asked   []string // what they were, and whose
	fails   bool
	now     int
	busiest int
}

func (u *unhurried) RoundTrip(r *http.Request) (*http.Response, error) {
	var event struct {
		Action string `json:"event_action"`
		Key    string `json:"dedup_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		return nil, err
	}
	u.mu.Lock()
	u.now++
	u.busiest = max(u.busiest, u.now)
	u.asked = append(u.asked, event.Action+" "+event.Key)
	status := http.StatusAccepted
	if u.fails && len(u.asked) == 3 {
		status = http.StatusTooManyRequests
	}
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.now--
	}()
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// As many incidents as a message may have are posted in the time that there is for it, few at once. If one is refused the message
// was not told.
func TestPagerPostsInTime(t *testing.T) {
	many := &notify.Message{Key: "many", State: notify.Firing, At: at}
	for i := range 50 {
		many.Alerts = append(many.Alerts, notify.Alert{Fingerprint: fmt.Sprint("died/", i), State: notify.Firing, Headline: "It died."})
	}
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			api := &unhurried{fails: fails}
			began := time.Now()
			_, err := channel(t, "pagerduty://events.pagerduty.com/"+strings.Repeat("0f", 16), api).Send(t.Context(), many)
			if took := time.Since(began); took > 8*time.Second || api.busiest > 8 {
				t.Errorf("it took %v, with %d at once", took, api.busiest)
			}
			slices.Sort(api.asked)
			if n := len(slices.Compact(api.asked)); !fails && (err != nil || n != 50) || fails && (err == nil || !strings.Contains(err.Error(), "429")) {
				t.Errorf("%d incidents, %v", n, err)
			}
		})
	}
}

// Receivers that refuse, break off or never answer end in an error, in time.
func TestReceiversThatFail(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, of := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"500":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of order", 500) }, "it answered 500 Internal Server Error: out of order"},
		"breaks": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "connection closed before the answer"},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "it answered 302 Found"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(of.answer)
			defer server.Close()
			_, err := channel(t, server.URL, http.DefaultTransport, whole).Send(t.Context(), message())
			if err == nil || !strings.HasPrefix(err.Error(), of.want) {
				t.Errorf("%v, want %s", err, of.want)
			}
		})
	}
}

// silent answers nothing, whatever ctx says.
type silent struct{ until chan struct{} }

func (s silent) RoundTrip(*http.Request) (*http.Response, error) {
	<-s.until
	return nil, errors.New("it is over")
}

// A receiver that never answers, in a library that never lets go, costs four places and no more, and time that is bounded.
func TestSilentReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		c := channel(t, "https://alerts.internal/", silent{until}, whole)
		began := time.Now()
		for range 4 {
			if _, err := c.Send(t.Context(), message()); err == nil || err.Error() != "no answer within 15s" {
				t.Errorf("%v", err)
			}
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		if _, err := c.Send(t.Context(), message()); err == nil || !strings.HasPrefix(err.Error(), "4 messages") {
			t.Errorf("a fifth one: %v", err)
		}
		time.Sleep(61 * time.Second) // two minutes after the first
		if _, err := c.Send(t.Context(), message()); err == nil || err.Error() != "no answer within 15s" {
			t.Errorf("the channel is dumb for good: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		close(until)
		synctest.Wait()
		if _, err := c.Send(ctx, message()); errors.Is(err, context.Canceled) || err == nil {
			t.Logf("a send that nobody waits for: %v", err)
		}
		synctest.Wait()
		if _, err := c.Send(t.Context(), message()); err == nil || err.Error() != "no valid HTTP answer" {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// The heartbeat is asked for at most every 30 seconds, and says what is wrong without its address.
func TestHeartbeat(t *testing.T) {
	now, status := at, http.StatusOK
	var asked int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Method != http.MethodGet || r.URL.Path != "/ping/fake-uuid-of-a-check" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		http.Error(w, "gone: "+r.URL.Path, status)
	}))
	defer server.Close()
	beat, err := notify.NewHeartbeat(server.URL+"/ping/fake-uuid-of-a-check", notify.Options{Transport: http.DefaultTransport, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after  time.Duration
		status int
		asked  int
		err    string
	}{
		{0, 200, 1, ""}, {15 * time.Second, 200, 1, ""}, {15 * time.Second, 404, 2, "it answered 404 Not Found: gone: /[hidden]"}, {time.Second, 200, 3, ""},
	} {
		now, status = now.Add(step.after), step.status
		text := ""
		if err := beat.Beat(t.Context()); err != nil {
			text = err.Error()
		}
		if asked != step.asked || text != step.err {
			t.Errorf("asked %d times, want %d; %q, want %q", asked, step.asked, text, step.err)
		}
	}
}
