package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// delivered is what a destination received, with the secret that it would verify it with.
type delivered struct {
	Secret  string            `json:"secret"`
	URL     string            `json:"-"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

const plain = "a fake secret that is no base64"

// The published libraries verify what the gateway delivers, with any of the destination's secrets, and
// refuse it after the slightest change.
func TestDeliveriesVerify(t *testing.T) {
	for _, library := range []struct {
		name    string
		verdict func(*testing.T, []delivered) []bool
	}{
		{"Go", verifyInGo},
		{"Node", verifyInNode},
	} {
		t.Run(library.name, func(t *testing.T) {
			var cases []delivered
			var want []bool
			for _, body := range []string{`{"id":"evt_1","amount":12}`, `{"text":"é € \u0000 😀"}`, `""`} {
				for d, authentic := range variants(deliverSigned(t, body)) {
					cases, want = append(cases, d), append(want, authentic)
				}
			}
			verdict := library.verdict(t, cases)
			for i, d := range cases {
				if verdict[i] != want[i] {
					t.Errorf("%+v: accepted %t, want %t", d, verdict[i], want[i])
				}
			}
		})
	}
}

// variants yields the delivery as each secret sees it, and changed forms of it.
func variants(d delivered) func(yield func(delivered, bool) bool) {
	with := func(secret string, change func(*delivered)) delivered {
		c := delivered{secret, d.URL, map[string]string{}, d.Body}
		for name, value := range d.Headers {
			c.Headers[name] = value
		}
		change(&c)
		return c
	}
	later := func(by time.Duration) func(*delivered) {
		return func(c *delivered) {
			at, _ := strconv.ParseInt(d.Headers["Webhook-Timestamp"], 10, 64)
			c.Headers["Webhook-Timestamp"] = strconv.FormatInt(at+int64(by/time.Second), 10)
		}
	}
	same := func(*delivered) {}
	return func(yield func(delivered, bool) bool) {
		_ = yield(with(whsec, same), true) &&
			yield(with(otherWhsec, same), true) &&
			yield(with(plain, same), true) &&
			yield(with("whsec_ZmFrZSBzZWNyZXQgb2Ygbm9ib2R5", same), false) &&
			yield(with(whsec, func(c *delivered) { c.Body += " " }), false) &&
			yield(with(whsec, func(c *delivered) { c.Headers["Webhook-Id"] += "0" }), false) &&
			yield(with(whsec, later(time.Second)), false) &&
			yield(with(whsec, later(-time.Hour)), false)
	}
}

// deliverSigned has the gateway deliver an event with three secrets, and returns what arrived.
func deliverSigned(t *testing.T, body string) delivered {
	t.Helper()
	return deliverTo(t, "", body, deliver.Destination{Secrets: []string{whsec, otherWhsec, plain}})
}

// deliverTo has the gateway deliver an event to a path, as the settings say, and returns what arrived.
func deliverTo(t *testing.T, path, body string, to deliver.Destination) delivered {
	t.Helper()
	arrived := make(chan delivered, 1)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		d := delivered{URL: "http://" + r.Host + r.RequestURI, Headers: map[string]string{}, Body: string(content)}
		for name, values := range r.Header {
			d.Headers[name] = strings.Join(values, ", ")
		}
		arrived <- d
	}))
	defer app.Close()
	to.URL, to.Timeout, to.Concurrency, to.Schedule, to.Stale = app.URL+path, time.Minute, 1, retry.Default(), deliver.StaleFlag
	j := &oneDelivery{work: make(chan *journal.Work, 1), outcome: make(chan journal.Outcome, 1)}
	d, err := deliver.New(deliver.Options{
		Journal: j, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Destinations: map[string]deliver.Destination{"app": to},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	j.work <- &journal.Work{
		Held:   journal.Held{EventID: 1, Destination: "app", Token: 1},
		Source: "billing", Key: "evt_1", Type: "invoice.paid", Tries: 1, ReceivedAt: time.Now(),
		Header: []byte("Content-Type: application/json\r\nWebhook-Signature: v1,bm90IG91cnM=\r\n"), Body: []byte(body),
	}
	if o := <-j.outcome; o.State != journal.Done {
		t.Fatalf("the delivery came to %+v", o)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	return <-arrived
}

// oneDelivery is a journal with one piece of work.
type oneDelivery struct {
	work    chan *journal.Work
	outcome chan journal.Outcome
}

func (j *oneDelivery) Work() <-chan *journal.Work   { return j.work }
func (j *oneDelivery) Paused(string) bool           { return false }
func (j *oneDelivery) Current(journal.Held) bool    { return true }
func (j *oneDelivery) Finish(o journal.Outcome)     { j.outcome <- o }
func (j *oneDelivery) Suspend(string, journal.Rest) {}

func verifyInGo(t *testing.T, cases []delivered) []bool {
	var verdict []bool
	for _, d := range cases {
		webhook, err := standardwebhooks.NewWebhook(d.Secret)
		if !strings.HasPrefix(d.Secret, "whsec_") {
			webhook, err = standardwebhooks.NewWebhookRaw([]byte(d.Secret))
		}
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		for name, value := range d.Headers {
			header.Set(name, value)
		}
		verdict = append(verdict, webhook.Verify([]byte(d.Body), header) == nil)
	}
	return verdict
}

func verifyInNode(t *testing.T, cases []delivered) []bool {
	if _, err := os.Stat("node/node_modules"); err != nil {
		t.Fatalf("%v: the library is not installed; run make oracle", err)
	}
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "verify.mjs")
	node.Dir, node.Stdin, node.Stderr = "node", bytes.NewReader(input), os.Stderr
	output, err := node.Output()
	if err != nil {
		t.Fatalf("node verify.mjs: %v", err)
	}
	var verdict []bool
	if err := json.Unmarshal(output, &verdict); err != nil || len(verdict) != len(cases) {
		t.Fatalf("node verify.mjs wrote %q for %d cases: %v", output, len(cases), err)
	}
	return verdict
}
