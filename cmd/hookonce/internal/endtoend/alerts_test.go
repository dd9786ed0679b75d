package endtoend

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/notify"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
)

var (
	untilOver = flag.Bool("alerts", false, "wait until alerts are over and that was told, which takes five minutes more")
	away      = flag.Duration("away", 40*time.Second, "how long the database is away in the test of alerts about that")
)

const (
	alertsSecret = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0IG9mIGFsZXJ0cw=="

	// alertsConfig is that of one gateway. Each has a channel at a path of its own: so the receiver knows who tells it.
	alertsConfig = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: "%s"
delivery: {backoff: 1s}
destinations:
  - {name: ledger, url: "%s/ledger"}
sources:
  - name: orders
    provider: custom
    secrets: [` + killSecret + `]
    routes: [{to: ledger}]
    spec:
      verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
      event: {key: [["json:$.id"]]}
alerts:
  rules:
    - {rule: destination_failing, for: 1s}
    - {rule: store_away, for: 1s}
  notify:
    - {name: incidents, url: env:INCIDENTS_URL, secrets: ["env:INCIDENTS_SECRET"]}
`
)

// told is a message that a receiver got.
type told struct {
	id   string // webhook-id
	by   int    // the gateway
	body notify.Body
}

// desk is who is told, and the app that fails.
type desk struct {
	*httptest.Server
	t        *testing.T
	works    atomic.Bool             // the app does
	hear     func(told) (answer int) // decides what a message is answered, 200 if nil
	mu       sync.Mutex
	messages []told
	more     chan struct{}
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, more: make(chan struct{}, 1)}
	d.Server = httptest.NewServer(http.HandlerFunc(d.receive))
	t.Cleanup(d.Close)
	return d
}

func (d *desk) receive(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ledger" {
		if !d.works.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return
	}
	m := told{id: r.Header.Get("Webhook-Id")}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = fmt.Sscanf(r.URL.Path, "/incidents/%d", &m.by)
	}
	if err == nil {
		_, err = provider.Standard(alertsSecret).Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()})
	}
	if err == nil {
		err = json.Unmarshal(body, &m.body)
	}
	if err != nil {
		d.t.Errorf("a message that cannot be read: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	d.messages = append(d.messages, m)
	hear := d.hear
	d.mu.Unlock()
	if hear != nil {
		w.WriteHeader(hear(m))
	}
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// about returns the messages about alerts of a rule, of a type, as a receiver groups them: by fingerprint and key.
func (d *desk) about(rule, kind string) (messages []told, fingerprints, keys map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fingerprints, keys = map[string]bool{}, map[string]bool{}
	for _, m := range d.messages {
		for _, a := range m.body.Data.Alerts {
			if a.Rule == rule && m.body.Type == kind {
				messages = append(messages, m)
				fingerprints[a.Fingerprint], keys[a.Key] = true, true
			}
		}
	}
	return messages, fingerprints, keys
}

// await waits until there are so many messages.
func (d *desk) await(rule, kind string, n int, patience time.Duration) []told {
	d.t.Helper()
	for late := time.After(patience); ; {
		if got, _, _ := d.about(rule, kind); len(got) >= n {
			return got
		}
		select {
		case <-d.more:
		case <-late:
			got, _, _ := d.about(rule, kind)
			d.t.Fatalf("%d messages %s about %s came, and not %d, in %v", len(got), kind, rule, n, patience)
		}
	}
}

// one wants all messages about a rule to be of one incident, each kind told once, however often it was sent.
func (d *desk) one(rule string, kinds ...string) {
	d.t.Helper()
	all := map[string]bool{}
	for _, kind := range kinds {
		messages, fingerprints, keys := d.about(rule, kind)
		for f := range fingerprints {
			all[f] = true
		}
		if len(keys) != 1 {
			d.t.Errorf("%s was told as %d incidents (%d messages), and there was one: %v", kind, len(keys), len(messages), keys)
		}
	}
	if len(all) != 1 {
		d.t.Errorf("a receiver that groups by fingerprint has %d incidents, and there was one: %v", len(all), all)
	}
}

// launchTellers starts three gateways.
func launchTellers(t *testing.T, d *desk, dsn string) (gateways [3]*process) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, alertsConfig, dsn, d.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range gateways {
		env := append(os.Environ(), "INCIDENTS_SECRET="+alertsSecret, fmt.Sprintf("INCIDENTS_URL=%s/incidents/%d", d.URL, i))
		p, err := launch(dir, env, "serve", "--config", file)
		if err != nil {
			t.Fatal(err)
		}
		p.endWith(t)
		gateways[i] = p
	}
	return gateways
}

// TestAlertOutlivesItsGateway kills the gateway that tells of an alert while the receiver has the message and has not answered:
// nobody knows then whether it was told. Another gateway tells the same again under the same key, so a receiver has one
// incident. With -alerts it waits until the alert is over, which is told once, too.
func TestAlertOutlivesItsGateway(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	d := newDesk(t)
	var gateways [3]*process
	var killed atomic.Int32
	killed.Store(-1)
	launched := make(chan struct{})
	d.hear = func(m told) int {
		<-launched
		if m.body.Type == "alert.firing" && m.body.Data.Alerts[0].Rule == "destination_failing" && killed.CompareAndSwap(-1, int32(m.by)) {
			if err := gateways[m.by].kill(); err != nil {
				t.Error(err)
			}
		}
		return http.StatusOK
	}
	gateways = launchTellers(t, d, pgtest.DSN(t))
	close(launched)
	for n := range 30 {
		body := fmt.Appendf(nil, `{"id":"evt_%d"}`, n)
		status, err := postTo(http.DefaultClient, provider.HMAC(provider.HMACConfig{Secrets: []string{killSecret}}), "http://"+gateways[n%3].addr+"/in/orders", body)
		if err != nil || status != http.StatusOK {
			t.Fatalf("event %d was answered %d, %v", n, status, err)
		}
	}
	messages := d.await("destination_failing", "alert.firing", 2, 3*time.Minute)
	if first, second := messages[0], messages[1]; first.by == second.by || first.id != second.id {
		t.Errorf("gateway %d told %s and was killed; then gateway %d told %s", first.by, first.id, second.by, second.id)
	}
	d.works.Store(true)
	kinds := []string{"alert.firing"}
	if *untilOver {
		d.await("destination_failing", "alert.resolved", 1, 8*time.Minute)
		<-time.After(time.Minute) // in which nobody tells it again
		kinds = append(kinds, "alert.resolved")
	}
	d.one("destination_failing", kinds...)
}

// TestStoreAwayIsOneIncident stops Postgres under three gateways, each of which tells so from its memory. A receiver that groups
// by key has one incident, however long it lasts. The store being back, nothing is told anew; with -alerts, that it is over is.
func TestStoreAwayIsOneIncident(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	d := newDesk(t)
	d.works.Store(true)
	cluster := pgtest.Start(t, pgtest.Options{})
	gateways := launchTellers(t, d, cluster.DSN(t))
	if err := cluster.Stop(true); err != nil {
		t.Fatal(err)
	}
	over := time.After(*away)
	d.await("store_away", "alert.firing", 1, 2*time.Minute)
	<-over
	if err := cluster.Restart(); err != nil {
		t.Fatal(err)
	}
	kinds := []string{"alert.firing"}
	if *untilOver {
		d.await("store_away", "alert.resolved", 1, 8*time.Minute)
		<-time.After(time.Minute) // in which nobody tells it again
		kinds = append(kinds, "alert.resolved")
	}
	d.one("store_away", kinds...)
	for i, g := range gateways {
		if err := g.end(syscall.SIGTERM); err != nil {
			t.Errorf("gateway %d: %v", i, err)
		}
	}
	tellers := map[int]bool{}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.messages {
		tellers[m.by] = true
		if strings.HasPrefix(m.body.Type, "alert.") && m.body.Data.Alerts[0].Rule != "store_away" {
			t.Errorf("it was told of %s as well", m.body.Data.Alerts[0].Rule)
		}
	}
	t.Logf("%d messages by %d gateways", len(d.messages), len(tellers))
}
