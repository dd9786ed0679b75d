package gateway

import (
	"crypto/tls"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

const everything = `
trusted_proxies: [127.0.0.1]
delivery: {timeout: 20s, ports: [443], allow_private: false}
destinations:
  - name: ledger
    url: https://ledger.internal/hooks
    secrets: [first-fake, whsec_c2Vjb25k]
    sign_as: provider
    concurrency: 8
    rate: 100
    attempts: 3
    backoff: 1s
    backoff_max: 2s
    give_up: 2d
    permanent: [400, 422]
    headers: {x-team: payments}
    drop_headers: [Cookie]
    order: by_resource
    stale: drop
    tls: {server_name: ledger.example}
    breaker_failures: 3
    breaker_pause: 2s
    breaker_pause_max: 1h
  - name: mailer
    url: https://mailer.internal/
    pass_headers: [X-Signature]
    also_pass: [X-Tenant, "X-Edge-*"]
    breaker: false
retention: {ids: 100d, bodies: 10d, attempts: 20d, audits: 30d}
sources:
  - name: billing
    provider: stripe
    secrets: [whsec_fake]
    rate: 10
    burst: 50
    allow: [192.0.2.0/24]
    max_body: 2MiB
    retention: {ids: 400d, bodies: 15d}
    logical_duplicates: {drop: [charge.succeeded]}
    routes:
      - to: [ledger, mailer]
        types: ["invoice.*"]
        where: {"json:$.livemode": "true"}
  - name: crm
    provider: custom
    secrets: [fake-secret]
    to: https://crm.internal/
    spec:
      verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
      event:
        key: [["json:$.id"]]
        type: ["json:$.type"]
      dedup:
        logical: [{key: ["json:$.n"], types: [made, done], mode: drop}, {key: ["json:$.m"], window: 1m}]
`

// Whatever a file can say reaches the package that it is for.
func TestWire(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(config.Input{Path: "hookonce.yaml", Data: []byte(everything)})
	if err != nil {
		t.Fatal(err)
	}
	w, err := wire(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	policy := deliver.AddressPolicy{DenyPrivate: true, Ports: []uint16{443}}
	usual := retry.Default()
	wantDestinations := map[string]deliver.Destination{
		"ledger": {
			Name: "ledger", URL: "https://ledger.internal/hooks", Timeout: 20 * time.Second, GiveUp: 48 * time.Hour,
			Schedule: retry.Schedule{Attempts: 3, First: time.Second, Longest: 2 * time.Second, Factor: 3}, Concurrency: 8, Rate: 100, Permanent: []int{400, 422},
			Header: http.Header{"X-Team": {"payments"}}, DropHeader: []string{"Cookie"}, Secrets: []string{"first-fake", "whsec_c2Vjb25k"},
			TLS: &tls.Config{ServerName: "ledger.example", MinVersion: tls.VersionTLS12}, Stale: deliver.StaleDrop, Policy: policy,
			Breaker: deliver.Breaker{Failures: 3, Pause: 2 * time.Second, PauseMax: time.Hour},
		},
		"mailer": {
			Name: "mailer", URL: "https://mailer.internal/", Timeout: 20 * time.Second, GiveUp: 7 * 24 * time.Hour, Schedule: usual,
			Concurrency: 64, Header: http.Header{}, PassHeader: []string{"X-Signature"}, AlsoPass: []string{"X-Tenant", "X-Edge-*"}, Stale: deliver.StaleDeliver, Policy: policy,
		},
		"crm": {
			Name: "crm", URL: "https://crm.internal/", Timeout: 20 * time.Second, GiveUp: 7 * 24 * time.Hour, Schedule: usual,
			Concurrency: 64, Header: http.Header{}, Stale: deliver.StaleDeliver, Policy: policy,
			Breaker: deliver.Breaker{Failures: 10},
		},
	}
	if diff := cmp.Diff(wantDestinations, w.deliver.Destinations, cmpopts.IgnoreUnexported(tls.Config{}), cmpopts.IgnoreFields(deliver.Destination{}, "Signers", "Rules")); diff != "" {
		t.Error("destinations:", diff)
	}
	for name, want := range map[string][]string{"ledger": {"billing", "crm"}, "mailer": nil, "crm": {"crm"}} {
		if got := slices.Sorted(maps.Keys(w.deliver.Destinations[name].Signers)); !slices.Equal(got, want) {
			t.Errorf("%s has signers for %q, want %q", name, got, want)
		}
	}
	wantHeld := map[string]journal.Destination{"ledger": {Ordered: true, Stale: true}, "mailer": {}, "crm": {}}
	if diff := cmp.Diff(wantHeld, w.journal.Destinations); diff != "" {
		t.Error("as the journal sees them:", diff)
	}
	const day = 24 * time.Hour
	wantRetention := &journal.Retention{
		Period: journal.Period{IDs: 100 * day, Bodies: 10 * day, Attempts: 20 * day, Answers: 10 * day}, Audits: 30 * day,
		Sources: map[string]journal.Period{"billing": {IDs: 400 * day, Bodies: 15 * day, Attempts: 20 * day, Answers: 15 * day}},
	}
	if diff := cmp.Diff(wantRetention, w.journal.Retention); diff != "" {
		t.Error("retention:", diff)
	}
	billing, crm := w.ingest.Sources[0], w.ingest.Sources[1]
	if billing.MaxBody != 2<<20 || billing.Rate != 10 || billing.Burst != 50 || len(billing.Allow) != 1 || billing.Secrets != 1 || billing.LogicalDuplicateWindow != 24*time.Hour || crm.LogicalDuplicateWindow != time.Minute {
		t.Errorf("billing: %+v", billing)
	}
	if diff := cmp.Diff([]string{"charge.succeeded"}, billing.DropLogicalDuplicates); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"made", "done"}, crm.DropLogicalDuplicates); diff != "" {
		t.Error(diff)
	}
	r := billing.Routes[0]
	if len(billing.Routes) != 1 || r.Where.Fields == nil || cmp.Diff(r.Where.Texts, []string{"true"}) != "" ||
		cmp.Diff(r.To, []string{"ledger", "mailer"}) != "" || cmp.Diff(r.Types, []string{"invoice.*"}) != "" {
		t.Errorf("routes of billing: %+v", billing.Routes)
	}
	if diff := cmp.Diff([]ingest.Route{{To: []string{"crm"}}}, crm.Routes); diff != "" {
		t.Error(diff)
	}
}
