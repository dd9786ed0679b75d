package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// counts returns what was counted, by source and word.
func counts(r *tally.Registry) map[string]int64 {
	all := map[string]int64{}
	for _, p := range r.Recent(tally.Query{Step: time.Hour, Until: time.Now().Add(time.Hour)}) {
		all[p.Source+" "+string(p.What)] += p.N
	}
	return all
}

// scripted is a journal that answers one after the other.
type scripted struct{ results []journal.Result }

func (s *scripted) Accept(context.Context, []*journal.Event) (next []journal.Result, _ error) {
	next, s.results = s.results[:1], s.results[1:]
	return next, nil
}

func TestWhatIsCounted(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	clock := func() time.Time { return now }
	rec, metrics := tally.NewRegistry(clock), prometheus.NewRegistry()
	first := journal.NewIDs(1, 0).Next(now.Add(-2 * time.Minute))
	results := []journal.Result{
		{Status: journal.Accepted, ID: first + 1}, {Status: journal.Unkeyed, ID: first + 2},
		{Status: journal.Duplicate, ID: first}, {Status: journal.Duplicate, ID: first}, {Status: journal.Conflict, ID: first},
	}
	j := &scripted{results: results}
	h := ingest.New(complete(ingest.Options{Sources: []ingest.Source{sourceTo("billing", testProvider{})}, Journal: j, Now: clock, Tally: rec, Registerer: metrics}))
	serve := func(r *http.Request) { h.ServeHTTP(httptest.NewRecorder(), r) }
	for range results {
		serve(request("billing", `{"id":"evt_1","type":"paid"}`))
	}
	forged := request("billing", `{"id":"evt_1"}`)
	forged.Header.Set(signatureHeader, "00")
	serve(forged)
	for i := range 1000 { // a stranger with endless names
		serve(request(fmt.Sprint("unknown-", i), `{}`))
	}
	want := map[string]int64{
		"billing received": 6, "billing active": 1, "billing verified": 5, "billing accepted": 1, "billing unkeyed": 1, "billing copies": 2, "billing conflicts": 1,
		"billing reseen": 1, "billing age:5m": 3, "billing rejected:signature_mismatch": 1, " rejected:unknown_source": 1000,
	}
	if diff := cmp.Diff(want, counts(rec)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, m := range []struct {
		name string
		want float64
	}{
		{"hookonce_reseen_events_total", 1}, {"hookonce_last_received_timestamp_seconds", float64(now.Unix())}, {"hookonce_last_verified_timestamp_seconds", float64(now.Unix())},
	} {
		if got := value(t, metrics, m.name); got != m.want {
			t.Errorf("%s is %v, want %v", m.name, got, m.want)
		}
	}
	if n, err := testutil.GatherAndCount(metrics, "hookonce_copy_age_seconds"); n != 1 || err != nil {
		t.Errorf("%d histograms of ages (%v)", n, err)
	}
}

// value returns the value of a metric with one child.
func value(t *testing.T, from *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name && len(f.Metric) == 1 {
			return f.Metric[0].GetCounter().GetValue() + f.Metric[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s with one child", name)
	return 0
}
