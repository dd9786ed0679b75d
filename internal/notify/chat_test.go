package notify_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/notify"
)

// services are addresses of all services of chats, and what is secret in each, besides in what form it may come back.
var services = map[string]struct {
	address string
	secrets []string
}{
	"bark":       {"bark://:fakeDeviceKey@bark.invalid/?scheme=http", []string{"fakeDeviceKey"}},
	"discord":    {"discord://fakeDiscordToken@123456789012", []string{"fakeDiscordToken", "123456789012"}},
	"generic":    {"generic+https://hooks.invalid/services/fakeGenericPath?@Authorization=Bearer%20fakeGenericToken", []string{"fakeGenericPath", "fakeGenericToken"}},
	"gotify":     {"gotify://127.0.0.1:1/Aaa.bbb.ccc.ddd?disabletls=yes", []string{"Aaa.bbb.ccc.ddd"}},
	"googlechat": {"googlechat://chat.googleapis.com/v1/spaces/FAKESPACE/messages?key=fakeKey&token=fakeToken", []string{"fakeKey", "fakeToken", "FAKESPACE"}},
	"ifttt":      {"ifttt://fakeIftttKey/?events=eventone", []string{"fakeIftttKey"}},
	"join":       {"join://:fakeJoinKey@join/?devices=fakeDevice", []string{"fakeJoinKey", "fakeDevice"}},
	"lark":       {"lark://open.larksuite.com/fakeLarkToken?secret=fakeLarkSecret", []string{"fakeLarkToken", "fakeLarkSecret"}},
	"matrix":     {"matrix://:fakeMatrixToken@127.0.0.1:1/?rooms=!fakeRoom:matrix.invalid&disableTLS=yes", []string{"fakeMatrixToken"}},
	"mattermost": {"mattermost://bot@127.0.0.1:1/fakeMattermostToken/fakeChannel?disabletls=yes", []string{"fakeMattermostToken"}},
	"notifiarr":  {"notifiarr://fakeNotifiarrKey?channel=123456789", []string{"fakeNotifiarrKey"}},
	"ntfy":       {"ntfy://user:fakeNtfyPassword@127.0.0.1:1/fakeTopic?scheme=http", []string{"fakeNtfyPassword", "fakeTopic"}},
	"opsgenie":   {"opsgenie://api.opsgenie.com/eb243592-faa2-4ba2-a551q-1afdf565c889", []string{"eb243592-faa2-4ba2-a551q-1afdf565c889", "1afdf565c889"}},
	"pushbullet": {"pushbullet://fakepushbullettokentokentokentoken", []string{"fakepushbullettokentokentokentoken"}},
	"pushover":   {"pushover://:fakeAppToken@fakeUserToken", []string{"fakeAppToken", "fakeUserToken"}},
	"rocketchat": {"rocketchat://127.0.0.1:1/fakeRocketToken/fakeRocketSecret", []string{"fakeRocketToken", "fakeRocketSecret"}},
	"signal":     {"signal://user:fakeSignalPassword@127.0.0.1:1/+12345678901/+10987654321?disabletls=yes", []string{"fakeSignalPassword", "12345678901", "10987654321"}},
	"slack":      {"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", []string{"123456789123456789123456", "BBBBBBBBB"}},
	"teams":      {"teams://11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05?host=test.webhook.office.com", []string{"33333333012222222222333333333344", "V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05", "11111111-4444-4444-8444-cccccccccccc"}},
	"telegram":   {"telegram://110201543:fakeTelegramTokenfakeTelegramToken1@telegram?chats=@fakeChannel", []string{"110201543", "fakeTelegramTokenfakeTelegramToken1"}},
	"wecom":      {"wecom://693axxx6-7aoc-4bc4-97a0-0ec2sifa5aaa", []string{"693axxx6-7aoc-4bc4-97a0-0ec2sifa5aaa", "0ec2sifa5aaa"}},
	"zulip":      {"zulip://bot-name%40zulip.invalid:fakeZulipKey@example.zulip.invalid?stream=foo&topic=bar", []string{"fakeZulipKey"}},
}

// repeater stands for the network: it fails in one of several ways, and each time repeats all that it was asked.
type repeater struct {
	fails   string
	refused string // what has this in it is refused
	says    string // in place of what it was asked; empty: that

	mu    sync.Mutex
	asked []string
}

func (r *repeater) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		body, _ = io.ReadAll(q.Body)
	}
	r.mu.Lock()
	r.asked = append(r.asked, q.URL.RawQuery+string(body))
	r.mu.Unlock()
	repeated := fmt.Sprintf("%s %s %v %q", q.Method, q.URL, q.Header, body)
	if r.fails == "breaks" {
		return nil, fmt.Errorf("dial tcp: lost %s", repeated)
	}
	status := map[string]int{"refuses": 403, "fails": 500, "takes": 200}[r.fails]
	if r.refused != "" && strings.Contains(string(body), r.refused) {
		status = 403
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status), " ", q.URL), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(cmp.Or(r.says, repeated))), Request: q}, nil
}

// A message about many subjects arrives at a service that takes no more than so much, with its beginning and where to read the rest.
func TestLongMessagesAreCut(t *testing.T) {
	usual := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = usual })
	long := message()
	long.Text = long.Title + "\n" + strings.Repeat("~", 40_000)
	for name, limit := range notify.Limits {
		t.Run(name, func(t *testing.T) {
			network := &repeater{fails: "takes", says: `{"code":0,"errcode":0,"success":true,"result":"success"}`}
			switch name {
			case "bark":
				network.says = `{"code":200}`
			case "teams":
				network.says = "1"
			}
			http.DefaultTransport = network
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // for ntfy, which goes its own way
				_, _ = network.RoundTrip(r)
				_, _ = io.WriteString(w, "{}")
			}))
			defer server.Close()
			_, err := channel(t, strings.Replace(services[name].address, "127.0.0.1:1", server.Listener.Addr().String(), 1), network).Send(t.Context(), long)
			said := strings.Join(network.asked, "")
			if n := strings.Count(said, "~"); err != nil || n > limit || n < limit*9/10 || !strings.Contains(said, "hooks.internal") {
				t.Errorf("%v, and %d of at most %d bytes arrive", err, n, limit)
			}
		})
	}
}

// A connector of Teams takes 28 KB, with the JSON around each line.
func TestTeamsTakesAllOfIt(t *testing.T) {
	usual := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = usual })
	network := &repeater{fails: "takes", says: "1"}
	http.DefaultTransport = network
	long := message()
	long.Text = long.Title + "\n" + strings.Repeat("Next: hookonce events list --destination ledger\n", 1000)
	if _, err := channel(t, services["teams"].address, network).Send(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if body := network.asked[0]; len(body) > 28<<10 || !strings.Contains(body, long.Link) {
		t.Errorf("it gets %d bytes", len(body))
	}
}

// What a service refuses with status 200, or a library takes for its own crash, is an error that says why.
func TestChatsSayWhatIsWrong(t *testing.T) {
	const throttled = "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429"
	before, usual := *http.DefaultClient, http.DefaultTransport
	t.Cleanup(func() { *http.DefaultClient, http.DefaultTransport = before, usual })
	for _, of := range []struct{ name, fails, says, want string }{
		{"teams", "takes", "1", ""},
		{"teams", "takes", "\r\n1", ""},
		{"teams", "takes", "\r\n", ""},
		{"teams", "takes", throttled + " with ContextId", throttled},
		{"teams", "refuses", "1", "403"},
		{"join", "takes", `{"success":true}`, ""},
		{"join", "takes", `{"success":false,"userAuthError":true,"errorMessage":"User not authenticated"}`, "User not authenticated"},
		{"join", "takes", `{"success":false}`, "success: false"},
		{"slack", "takes", "ok", ""},
		{"zulip", "takes", `{"result":"success"}`, ""},
		{"zulip", "breaks", "", "dial tcp: lost"},
		{"zulip", "refuses", "", "403"},
		{"rocketchat", "breaks", "", "dial tcp: lost"},
	} {
		t.Run(fmt.Sprintf("%s %s %.20s", of.name, of.fails, of.says), func(t *testing.T) {
			network := &repeater{fails: of.fails, says: of.says}
			http.DefaultTransport = network
			notify.RestrainDefaults()
			_, err := channel(t, services[of.name].address, network).Send(t.Context(), message())
			if (err == nil) != (of.want == "") || err != nil && !strings.Contains(err.Error(), of.want) {
				t.Errorf("%v, want %q", err, of.want)
			}
		})
	}
}

// whatever a service makes of an address and a receiver says of it, none of it gets into an error or an answer.
func TestFailuresShowNoSecret(t *testing.T) {
	usual := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = usual })
	for name, of := range services {
		for _, fails := range []string{"breaks", "refuses", "fails", "takes"} {
			t.Run(name+" "+fails, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network := &repeater{fails: fails}
					http.DefaultTransport = network
					answer, err := channel(t, of.address, network).Send(t.Context(), message())
					time.Sleep(10 * time.Minute) // discord tries again by itself
					if err == nil && fails != "takes" {
						t.Errorf("it took the message: %s", answer)
					}
					text := strings.ToLower(fmt.Sprint(answer, err))
					t.Log(text)
					for _, secret := range of.secrets {
						if strings.Contains(text, strings.ToLower(secret)) {
							t.Errorf("%s is in %q", secret, text)
						}
					}
				})
			})
		}
	}
}

// Every scheme is one that Check knows, and what is sent has the title and the text.
func TestChatsSayAll(t *testing.T) {
	if got, want := slices.Concat(slices.Collect(maps.Keys(services)), []string{"http", "https", "pagerduty", "smtp", "smtps"}), notify.Schemes(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("tried are %q, and there are %q", got, want)
	}
	usual := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = usual })
	for name, of := range services {
		switch name {
		case "gotify", "mattermost", "ntfy": // have transports of their own
			continue
		case "matrix": // asks for its rooms first
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &repeater{fails: "takes"}
				http.DefaultTransport = network
				m := message()
				_, _ = channel(t, of.address, network).Send(t.Context(), m)
				sent := strings.Join(network.asked, "\n")
				for _, want := range []string{m.Title, "ledger has been failing since 02:14:00Z", "hookonce doctor"} {
					if n := strings.Count(unescaped(sent), want); n < 1 || n > 2 && name != "opsgenie" { // teams has a summary besides, and opsgenie closes two
						t.Errorf("%q is there %d times: %s", want, n, sent)
					}
				}
			})
		})
	}
}

// A chat that sends elsewhere is one that was not told, and nobody else gets its address.
func TestChatsFollowNoRedirect(t *testing.T) {
	before, usual := *http.DefaultClient, http.DefaultTransport
	t.Cleanup(func() { *http.DefaultClient, http.DefaultTransport = before, usual })
	network := &moved{asked: map[string]int{}}
	http.DefaultTransport = network
	notify.RestrainDefaults()
	if http.DefaultClient.Timeout != 30*time.Second {
		t.Errorf("a client waits for %v", http.DefaultClient.Timeout)
	}
	server := httptest.NewServer(http.HandlerFunc(network.answer))
	defer server.Close()
	for name, of := range services {
		t.Run(name, func(t *testing.T) {
			clear(network.asked)
			address := of.address
			if name == "gotify" || name == "mattermost" || name == "ntfy" { // have transports of their own
				address = strings.Replace(address, "127.0.0.1:1", strings.TrimPrefix(server.URL, "http://"), 1)
			}
			_, err := channel(t, address, network).Send(t.Context(), message())
			if err == nil || network.asked["elsewhere"] > 0 || network.asked["here"] == 0 {
				t.Errorf("%v, after %v", err, network.asked)
			}
			if name != "telegram" && name != "opsgenie" && name != "matrix" && !strings.Contains(err.Error(), "redirect") { // these say what they were answered, or that none of their rooms was told
				t.Errorf("it says %v", err)
			}
		})
	}
}

// moved is a network in which all that is asked for is elsewhere now.
type moved struct {
	mu    sync.Mutex
	asked map[string]int
}

func (m *moved) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.answer(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

func (m *moved) answer(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/elsewhere") {
		m.asked["elsewhere"]++
		return
	}
	m.asked["here"]++
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// unescaped undoes what forms and JSON do to a text.
func unescaped(s string) string {
	s = strings.NewReplacer(`\n`, "\n", "+", " ", "%3A", ":", "%0A", "\n").Replace(s)
	return s
}
