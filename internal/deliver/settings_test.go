package deliver_test

import (
	"crypto/tls"
	"crypto/x509"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// Settings that make no sense are refused with a word on what is wrong, and without their secrets.
func TestNewRefusesSettings(t *testing.T) {
	header := func(name, value string) deliver.Destination {
		return deliver.Destination{Header: http.Header{name: {value}}}
	}
	for _, c := range []struct {
		name     string
		settings deliver.Destination
		says     string
	}{
		{"negative timeout", deliver.Destination{Timeout: -1}, "timeout"},
		{"negative time to give up", deliver.Destination{GiveUp: -1}, "negative"},
		{"negative concurrency", deliver.Destination{Concurrency: -1}, "concurrency"},
		{"negative rate", deliver.Destination{Rate: -1}, "negative"},
		{"no number of a rate", deliver.Destination{Rate: math.NaN()}, "rate"},
		{"endless rate", deliver.Destination{Rate: math.Inf(1)}, "rate"},
		{"a success that is permanent", deliver.Destination{Permanent: []int{400, 204}}, "204"},
		{"no status", deliver.Destination{Permanent: []int{600}}, "600"},
		{"a pause that is permanent", deliver.Destination{Permanent: []int{503}}, "503"},
		{"unknown policy", deliver.Destination{Stale: "ignore"}, "ignore"},
		{"breaker that never ends", deliver.Destination{Breaker: deliver.Breaker{Failures: 1, Pause: time.Hour, PauseMax: time.Minute}}, "pause"},
		{"no attempts", deliver.Destination{Schedule: retry.Schedule{First: time.Second}}, "attempts"},
		{"breaker before its time", deliver.Destination{Breaker: deliver.Breaker{Pause: -1}}, "pause"},
		{"empty secret", deliver.Destination{Secrets: []string{"whsec_ZmFrZQ==", ""}}, "empty"},
		{"empty secret with a prefix", deliver.Destination{Secrets: []string{"whsec_"}}, "empty"},
		{"secret that is not base64", deliver.Destination{Secrets: []string{"whsec_fake-password"}}, "base64"},
		{"both lists", deliver.Destination{PassHeader: []string{"A"}, DropHeader: []string{"B"}}, "two lists"},
		{"no name of a header", deliver.Destination{DropHeader: []string{"X: y"}}, "X: y"},
		{"header of ours", header("hookonce-key", "x"), "Hookonce-Key"},
		{"the key", header("Idempotency-Key", "x"), "Idempotency-Key"},
		{"signature", header("webhook-signature", "x"), "Webhook-Signature"},
		{"trace", header("traceparent", "x"), "Traceparent"},
		{"header of the connection", header("transfer-encoding", "chunked"), "Transfer-Encoding"},
		{"host", header("Host", "other"), "Host"},
		{"a header that cannot be sent", header("X y", "1"), "X y"},
		{"a value that cannot be sent", header("X-Y", "fake-password\r\nX-Z: 2"), "X-Y"},
		{"credentials twice", deliver.Destination{URL: "http://user:fake-password@app.invalid/", Header: http.Header{"Authorization": {"x"}}}, "Authorization"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.settings.URL == "" {
				c.settings.URL = nowhere.URL
			}
			_, err := options{Options: deliver.Options{Destinations: map[string]deliver.Destination{"app": c.settings}}}.open()
			if err == nil {
				t.Fatal("taken")
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), `"app"`) || strings.Contains(err.Error(), "fake-password") {
				t.Errorf("says %q, want it to name the destination and %q", err, c.says)
			}
		})
	}
}

// A connection is refused by the address that a name stands for, before anything is sent.
func TestPolicyIsAskedAfterTheName(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy deliver.AddressPolicy
		says   string
	}{
		{"private", deliver.AddressPolicy{DenyPrivate: true}, "not a public address"},
		{"port", deliver.AddressPolicy{Ports: []uint16{443}}, "not one of the ports"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
			defer app.Close()
			url := strings.Replace(app.URL, "127.0.0.1", "localhost", 1)
			r := newRig(t, deliver.Destination{URL: url, Policy: c.policy, Schedule: hourly}, nil)
			r.accept(t, entry("a"))
			if o := r.attempts(t, 1)[0]; o.State != journal.Failed || !strings.Contains(o.Error, c.says) {
				t.Errorf("outcome %s, %q; want %q", o.State, o.Error, c.says)
			}
		})
	}
}

// The destination's own authority, client certificate and server name are used.
func TestTLSSettings(t *testing.T) {
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 || r.ProtoMajor != 2 {
			t.Errorf("%d client certificates, %s", len(r.TLS.PeerCertificates), r.Proto)
		}
	}))
	app.Config.ErrorLog = quiet
	app.EnableHTTP2 = true
	app.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	app.StartTLS()
	defer app.Close()
	roots := x509.NewCertPool()
	roots.AddCert(app.Certificate())
	for _, c := range []struct {
		name  string
		tls   *tls.Config
		state journal.State
		cause string
	}{
		{"all there", &tls.Config{RootCAs: roots, Certificates: app.TLS.Certificates, ServerName: "example.com"}, journal.Done, ""},
		{"other name", &tls.Config{RootCAs: roots, Certificates: app.TLS.Certificates, ServerName: "other.invalid"}, journal.Failed, "certificate not trusted"},
		{"no client certificate", &tls.Config{RootCAs: roots}, journal.Failed, ""}, // told after the handshake, or cut off
		{"unknown authority", &tls.Config{Certificates: app.TLS.Certificates}, journal.Failed, "certificate not trusted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, deliver.Destination{URL: app.URL, TLS: c.tls, Schedule: hourly}, nil)
			r.accept(t, entry("a"))
			if o := r.attempts(t, 1)[0]; o.State != c.state || c.cause != "" && o.Error != c.cause {
				t.Errorf("outcome %s, %q; want %s, %q", o.State, o.Error, c.state, c.cause)
			}
		})
	}
}
