package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// came is a request for an event, so many seconds after noon.
func came(key string, at, took float64, status int, change ...func(*Observation)) Observation {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	o := Observation{Source: "orders", ReceivedAt: noon.Add(seconds(at)), Kind: Event, Requests: 1, Key: key, Digest: []byte("same"), Status: status, Took: seconds(took)}
	for _, f := range change {
		f(&o)
	}
	return o
}

func other(o *Observation)   { o.Digest = []byte("other") }
func unheard(o *Observation) { o.Unheard = true }

// TestReportJudges goes through what requests for one event can come to. The report is about noon and later.
func TestReportJudges(t *testing.T) {
	type verdict struct {
		Events, Copies, AfterSuccess, AtOnce, Retries, Doubled, Unanswered, Conflicts, Slow int64
	}
	for name, c := range map[string]struct {
		came []Observation
		want verdict
	}{
		"once":                          {[]Observation{came("a", 0, 1, 200)}, verdict{Events: 1}},
		"copy after success":            {[]Observation{came("a", 0, 1, 200), came("a", 60, 1, 200)}, verdict{Events: 1, Copies: 1, AfterSuccess: 1, Doubled: 1}},
		"copy that is refused":          {[]Observation{came("a", 0, 1, 200), came("a", 60, 1, 409)}, verdict{Events: 1, Copies: 1, AfterSuccess: 1}},
		"copies at once":                {[]Observation{came("a", 0, 2, 200), came("a", 1, 2, 200)}, verdict{Events: 1, Copies: 1, AtOnce: 1, Doubled: 1}},
		"at once, and one fails":        {[]Observation{came("a", 0, 2, 500), came("a", 1, 2, 200)}, verdict{Events: 1, Copies: 1, AtOnce: 1}},
		"a retry":                       {[]Observation{came("a", 0, 1, 500), came("a", 60, 1, 204)}, verdict{Events: 1, Copies: 1, Retries: 1}},
		"retries in vain":               {[]Observation{came("a", 0, 1, 500), came("a", 60, 1, 302), came("a", 90, 1, 0)}, verdict{Events: 1, Copies: 2, Retries: 2, Unanswered: 1}},
		"retry and copy":                {[]Observation{came("a", 0, 1, 500), came("a", 60, 1, 200), came("a", 90, 1, 200)}, verdict{Events: 1, Copies: 2, Retries: 1, AfterSuccess: 1, Doubled: 1}},
		"half an answer":                {[]Observation{came("a", 0, 1, 200, func(o *Observation) { o.Failure = FailureBroken })}, verdict{Events: 1, Unanswered: 1}},
		"other content":                 {[]Observation{came("a", 0, 1, 200), came("a", 60, 1, 409, other)}, verdict{Events: 1, Copies: 1, AfterSuccess: 1, Conflicts: 1}},
		"too late":                      {[]Observation{came("a", 0, 30, 200, unheard), came("a", 20, 1, 200)}, verdict{Events: 1, Copies: 1, AtOnce: 1, Doubled: 1, Slow: 1}},
		"two events":                    {[]Observation{came("a", 0, 1, 200), came("b", 0, 1, 200)}, verdict{Events: 2}},
		"long ago":                      {[]Observation{came("a", -60, 1, 500)}, verdict{}},
		"copy of one of long ago":       {[]Observation{came("a", -60, 1, 200), came("a", 60, 1, 200)}, verdict{Events: 1, Copies: 1, AfterSuccess: 1, Doubled: 1}},
		"doubled long ago":              {[]Observation{came("a", -90, 1, 200), came("a", -60, 1, 200), came("a", 60, 1, 500)}, verdict{Events: 1, Copies: 1, AfterSuccess: 1}},
		"retry of one of long ago":      {[]Observation{came("a", -60, 1, 500), came("a", 60, 1, 200)}, verdict{Events: 1, Copies: 1, Retries: 1}},
		"other content was long ago":    {[]Observation{came("a", -60, 1, 200), came("a", 60, 1, 200, other)}, verdict{Events: 1, Copies: 1, AfterSuccess: 1, Doubled: 1, Conflicts: 1}},
		"success that ended after copy": {[]Observation{came("a", 0, 5, 200), came("a", 1, 1, 500), came("a", 3, 1, 500)}, verdict{Events: 1, Copies: 2, AtOnce: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := judged(t, 5, c.came...)
			got := verdict{r.Events, r.Copies.All, r.Copies.AfterSuccess, r.Copies.AtOnce, r.Copies.Retries, r.Doubled.Count, r.Unanswered.Count, r.Conflicts.Count, r.Slow.Count}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// judged returns the report about what came, in the order of a store.
func judged(t *testing.T, limit int, all ...Observation) *Report {
	t.Helper()
	p := sqlitePlace(t)
	p.migrate(t)
	s := p.store(t)
	for i, o := range all {
		if _, err := s.insert(t.Context(), []row{{int64(len(all) - i), o}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := NewReport(t.Context(), s, "orders", noon, limit)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The newest events are shown, all are counted, and of many requests for one the first and the last.
func TestReportShowsTheNewest(t *testing.T) {
	var all []Observation
	for i := range 10 {
		all = append(all, came(fmt.Sprint("k", i), float64(i), 0.1, 500))
	}
	for i := range 3 * maxSightings {
		all = append(all, came("many", float64(100+i), 0.1, 503))
	}
	r := judged(t, 3, all...)
	var shown []string
	for _, c := range r.Unanswered.Events {
		shown = append(shown, c.Key)
	}
	if diff := cmp.Diff([]string{"many", "k9", "k8"}, shown); diff != "" || r.Unanswered.Count != 11 {
		t.Errorf("%d are counted; shown: %s", r.Unanswered.Count, diff)
	}
	many := r.Unanswered.Events[0]
	if n := len(many.Seen); many.Times != 3*maxSightings || n != maxSightings || !many.Seen[0].At.Equal(noon.Add(100*time.Second)) || !many.Seen[n-1].At.Equal(noon.Add(time.Duration(99+3*maxSightings)*time.Second)) {
		t.Errorf("shown of many: %+v", many)
	}
}

// What is older than it is to be kept goes, and so do the oldest beyond the bound; of one source only.
func TestForget(t *testing.T) {
	onEveryStore(t, func(t *testing.T, p place) {
		p.migrate(t)
		s := p.store(t)
		var rows []row
		for i := range 10 {
			o := came(fmt.Sprint("k", i), float64(i), 0, 200)
			rows = append(rows, row{int64(2 * i), o})
			o.Source = "others"
			rows = append(rows, row{int64(2*i + 1), o})
		}
		if _, err := s.insert(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		left := func(source string) (keys []string) {
			if err := s.Read(t.Context(), source, time.Time{}, func(o Observation) error { keys = append(keys, o.Key); return nil }); err != nil {
				t.Fatal(err)
			}
			return keys
		}
		for _, step := range []struct {
			before time.Time
			most   int
			want   int
		}{{time.Time{}, 10, 10}, {noon.Add(3 * time.Second), 10, 7}, {noon, 4, 4}, {time.Time{}, 4, 4}, {noon.Add(time.Hour), 4, 0}} {
			if err := s.forget(t.Context(), "orders", step.before, step.most); err != nil {
				t.Fatal(err)
			}
			if keys := left("orders"); len(keys) != step.want || len(keys) > 0 && keys[len(keys)-1] != "k9" {
				t.Errorf("before %v, at most %d: %v are left", step.before, step.most, keys)
			}
		}
		if keys := left("others"); len(keys) != 10 {
			t.Errorf("of the other source %v are left", keys)
		}
	})
}
