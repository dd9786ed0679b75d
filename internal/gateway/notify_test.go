package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/notify"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider"
)

// incidents takes what a gateway tells, verified as any receiver would, and refuses it while it is down.
type incidents struct {
	*httptest.Server
	mu   sync.Mutex
	down bool
	keys []string
	told []notify.Body

	tried, heard chan struct{} // something is new in keys, or in told
}

const incidentsSecret = "whsec_ZmFrZS1mYWtlLWZha2UtZmFrZS1mYWtl"

func newIncidents(t *testing.T) *incidents {
	in := &incidents{tried: make(chan struct{}, 1), heard: make(chan struct{}, 1)}
	signal := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	verifier := provider.Standard(incidentsSecret)
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		d, err := verifier.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: text, Now: time.Now()})
		in.mu.Lock()
		defer in.mu.Unlock()
		var body notify.Body
		if err != nil || json.Unmarshal(text, &body) != nil {
			t.Errorf("what came cannot be verified: %v", err)
			return
		}
		in.keys = append(in.keys, d.Events[0].Key)
		defer signal(in.tried)
		if in.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		in.told = append(in.told, body)
		defer signal(in.heard)
	}))
	t.Cleanup(in.Close)
	return in
}

// channel is the one that leads there.
func (in *incidents) channel() config.Channel {
	return config.Channel{Name: "incidents", URL: resolved(in.URL + "/hooks?token=fake-token-of-incidents"), Secrets: []settings.Secret{settings.Literal(incidentsSecret)}, Severities: []string{"page"}}
}

func resolved(address string) settings.Secret { return settings.Literal(address) }

// From the failure to the person: an alert fires, a receiver that is down for a while gets it under one key, somebody
// acknowledges it, and page one says so. No line of the log has the token of the receiver.
func TestPeopleAreTold(t *testing.T) {
	t.Parallel()
	in := newIncidents(t)
	w := newWorld(t, func(c *config.Config) {
		c.Destinations[0].BreakerFailures = 1
		c.DashboardURL = "https://hooks.internal"
		c.Notify = []config.Channel{in.channel()}
	})
	w.sink.answer = func(string, int) int { return 500 }
	w.send("e", 30, 200)
	w.settles("destination_failing", "500", "--destination ledger --state failed")
	in.mu.Lock()
	in.down = true
	in.mu.Unlock()
	evaluate := func() {
		w.ahead.Add(int64(2 * time.Minute))
		w.alerting.Evaluate(t.Context())
		w.alerting.Flush(t.Context())
	}
	evaluate() // it is pending
	evaluate() // it fires, and the receiver is down; the gateway may send by itself, before Flush does
	<-in.tried
	in.mu.Lock()
	if len(in.keys) == 0 || len(in.told) != 0 {
		t.Fatalf("tried are %q, and told %+v", in.keys, in.told)
	}
	in.down = false
	in.mu.Unlock()
	evaluate()
	<-in.heard
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.told) != 1 || in.keys[0] != in.keys[len(in.keys)-1] {
		t.Fatalf("tried under %q, told are %+v", in.keys, in.told)
	}
	got := in.told[0]
	if key := got.Data.Alerts[0].Key; !strings.Contains(key, "destination_failing/ledger") || !strings.HasSuffix(key, "#1") {
		t.Errorf("the alert has the key %q", key)
	}
	if got.Type != "alert.firing" || got.Data.Severity != "page" || !strings.Contains(got.Data.Text, "ledger has been failing") || !strings.Contains(got.Data.Link, "https://hooks.internal/alerts") {
		t.Errorf("it is told %+v", got)
	}
	res, body := postJSON(t, w.client, w.Gateway, "/api/v1/alerts/acknowledge", `{"alert":"destination_failing/ledger","reason":"restarting it"}`)
	if res != http.StatusOK {
		t.Fatalf("%d %s", res, body)
	}
	if o := w.look(); len(o.Attended) != 1 || o.Attended[0].Acknowledged == nil || o.Attended[0].Acknowledged.Reason != "restarting it" {
		t.Errorf("page one says %+v", o.Attended)
	}
}

// postJSON posts to the admin listener.
func postJSON(t *testing.T, c *http.Client, g *Gateway, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.AdminAddr().String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}

// Channels are as they are configured, and what they say when they cannot work has nothing of their addresses.
func TestTelling(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DashboardURL, cfg.Heartbeat = "https://hooks.internal", resolved("https://beats.internal/fake-uuid")
	cfg.Notify = []config.Channel{
		{Name: "oncall", URL: resolved("pagerduty:///0123456789abcdef0123456789abcdef"), Severities: []string{"page"}},
		{Name: "team", URL: resolved("slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook"), Severities: []string{"page", "ticket"}},
	}
	told, err := newTelling(cfg, deliver.AddressPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintln(told.addresses[0].Name, told.addresses[0].Severities, told.addresses[1].Severities, told.channels[1].Kind(), told.heartbeat != nil); got != "oncall [page] [page ticket] slack true\n" {
		t.Error(got)
	}
	cfg.Notify[0].URL = resolved("pagerduty:///hunter2")
	if _, err := newTelling(cfg, deliver.AddressPolicy{}); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "oncall") {
		t.Errorf("%v", err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "channel", cfg.Notify, "all", fmt.Sprintf("%+v", cfg.Notify))
	if strings.Contains(log.String(), "123456789123456789123456") {
		t.Errorf("a channel that is logged shows its address: %s", log.String())
	}
}

// Requests of channels go where deliveries may go.
func TestChannelsKeepToTheAddressPolicy(t *testing.T) {
	t.Parallel()
	in := newIncidents(t)
	cfg := config.Default()
	cfg.Notify = []config.Channel{in.channel()}
	told, err := newTelling(cfg, deliver.AddressPolicy{DenyPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := told.channels[0].Send(t.Context(), &notify.Message{Key: "x", State: notify.Test, At: time.Now()}); err == nil || !strings.Contains(err.Error(), "not a public address") || len(in.keys) > 0 {
		t.Errorf("%v", err)
	}
}
