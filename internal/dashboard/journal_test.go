package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard"
	"github.com/hookonce/hookonce/internal/dashboard/dashboardtest"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/problem"
)

// behind returns the dashboard of a journal, as the API tells of it. These sources are configured.
func behind(store journal.Store, sources ...string) http.Handler {
	now := func() time.Time { return dashboardtest.Now }
	return dashboard.New(dashboard.Options{
		API: api.New(api.Options{
			Journal: store, Records: store, Now: now,
			Sources: func() (all []api.Source) {
				for _, name := range sources {
					all = append(all, api.Source{Name: name, Destinations: []string{}})
				}
				return all
			},
			Targets: func() []fleet.Target { return []fleet.Target{{Name: "app"}} },
		}),
		Guard: api.NewGuard(nil, api.GuardOptions{}), Now: now,
	})
}

// What is on record is found by its key, with its source and without, however many sources there
// are and whatever became of the one that it came by: who is told that it never came has it sent
// again.
func TestFindsWhatIsOnRecord(t *testing.T) {
	m, ids := journaltest.NewMemory(), journal.NewIDs(1, 0)
	address := map[string]string{}
	for i, e := range [][2]string{{"billing", "evt_1"}, {"billing", "a/b"}, {"source 64", "evt_last"}, {"source 3", "twice"}, {"billing", "twice"}} {
		received := dashboardtest.Now.Add(time.Duration(i-60) * time.Minute)
		r := &journal.Record{ID: ids.Next(received), Event: &journal.Event{
			Source: e[0], Key: e[1], Type: "invoice.paid", Digest: []byte(e[1]), Header: []byte("A: b\r\n"), Body: []byte(`{}`), ReceivedAt: received,
		}}
		if results, err := m.Accept(t.Context(), []*journal.Record{r}, received, received.Add(time.Minute)); err != nil || results[0].Err != nil {
			t.Fatal(err, results)
		}
		address[e[0]+"/"+e[1]] = "/events/" + strconv.FormatInt(r.ID, 10)
	}
	var sources []string
	for i := range 65 {
		sources = append(sources, fmt.Sprint("source ", i))
	}
	d := behind(m, sources...)
	find := func(text string) (code int, to, page string) {
		w := serve(d, request("GET", "/find?q="+url.QueryEscape(text), nil))
		return w.Code, w.Header().Get("Location"), w.Body.String()
	}
	for text, want := range map[string]string{
		"billing/evt_1":                      address["billing/evt_1"],
		"evt_1":                              address["billing/evt_1"],
		" evt_last ":                         address["source 64/evt_last"],
		"a/b":                                address["billing/a/b"],
		"billing/a/b":                        address["billing/a/b"],
		address["billing/evt_1"][8:]:         address["billing/evt_1"],
		"source 3/twice":                     address["source 3/twice"],
		"evt":                                "/events?resource=evt",
		"source 3/evt_1":                     "/events?resource=source+3%2Fevt_1",
		strings.Repeat("s", 65) + "/nothing": "/events?resource=" + strings.Repeat("s", 65) + "%2Fnothing",
		"..":                                 "/events?resource=..",
		"":                                   "/events",
	} {
		if code, to, _ := find(text); code != http.StatusSeeOther || to != want {
			t.Errorf("%q leads to %d %s, want %s", text, code, to, want)
		}
	}
	code, _, page := find("twice")
	first, second := strings.Index(page, address["billing/twice"]), strings.Index(page, address["source 3/twice"])
	if code != http.StatusOK || first < 0 || second < first || !strings.Contains(page, "2\u00a0events of as many sources have the key twice, newest first.") || strings.Contains(page, `action="/replay"`) {
		t.Errorf("what two sources have: %d, at %d and %d of %s", code, first, second, page)
	}
}

// That nobody could look is not told as that there is nothing.
func TestFindFails(t *testing.T) {
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable} {
		told := &dashboardtest.API{World: dashboardtest.Calm}
		d := dashboard.New(dashboard.Options{
			API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/api/v1/keys/") {
					(&problem.Details{Status: status, Detail: "the store fails"}).Write(w)
					return
				}
				told.ServeHTTP(w, r)
			}),
			Guard: api.NewGuard(nil, api.GuardOptions{}),
		})
		if w := serve(d, request("GET", "/find?q=evt_1", nil)); w.Code != status {
			t.Errorf("the API answers %d, and the page %d to %q", status, w.Code, w.Header().Get("Location"))
		}
	}
}

// sparse is a journal in which each look takes a while, and the fifth and the seventh of them find
// the first that match.
type sparse struct {
	*journaltest.Memory
	asked []journal.Replay
	fails bool
}

func (s *sparse) Replay(_ context.Context, r journal.Replay, _ int) (journal.Replayed, error) {
	if s.fails {
		return journal.Replayed{}, errors.New("connection refused")
	}
	s.asked = append(s.asked, r)
	time.Sleep(5 * time.Second) // of the bubble: a page waits for three looks
	out := journal.Replayed{Next: r.After + 1, Audit: r.Audit}
	switch r.After {
	case 4:
		out.Events, out.Deliveries = 1, 1
	case 6:
		out.Events, out.Deliveries, out.Next = 2, 3, 0
	}
	return out, nil
}

// What a page cannot count, or do, within one request is gone on with by the forms of that page, as
// the API takes them: a count is never gone on with by doing what it has not counted yet. Sums are
// those of all requests, and a failure on the way loses none.
func TestReplayGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sparse{Memory: journaltest.NewMemory()}
		d := behind(s)
		post := func(form url.Values, want string) string {
			t.Helper()
			w := serve(d, request("POST", "/replay", form))
			page := w.Body.String()
			if _, wrong, _ := strings.Cut(page, `role="alert">`); w.Code != http.StatusOK || (wrong != "") != s.fails || !strings.Contains(page, want) {
				t.Fatalf("%v: %d, without %q: %s", form, w.Code, want, page)
			}
			return page
		}
		first := post(url.Values{"type": {"invoice.*"}, "step": {"count"}}, "Nothing so far would begin again: not everything was looked at yet.")
		if form := formOf(t, first, "do"); form == nil || form.Get("cursor") != "" {
			t.Errorf("what need not be counted to its end is done with %v", form)
		}
		s.fails = true
		failed := post(formOf(t, first, "count"), "Nothing so far")
		s.fails = false
		second := post(formOf(t, failed, "count"), "1\u00a0delivery of 1\u00a0event so far would begin again: not")
		third := post(formOf(t, second, "count"), "4\u00a0deliveries of 3\u00a0events would begin again.")
		if form := formOf(t, third, "count"); form != nil {
			t.Errorf("what was counted to its end is gone on with by %v", form)
		}
		form := formOf(t, third, "do")
		form.Set("reason", "mended")
		first = post(form, "0\u00a0deliveries begin again so far.")
		s.fails = true
		failed = post(formOf(t, first, "do"), "0\u00a0deliveries begin again so far.")
		s.fails = false
		second = post(formOf(t, failed, "do"), "1\u00a0delivery begins again so far.")
		third = post(formOf(t, second, "do"), "4\u00a0deliveries begin again.")
		if formOf(t, third, "do") != nil || formOf(t, third, "count") != nil {
			t.Errorf("what is done is gone on with: %s", third)
		}
		for i, r := range s.asked {
			if dry := i < 7; r.After != int64(i%7) || r.DryRun != dry || r.Type != "invoice.*" || !dry && r.Reason != "mended" {
				t.Errorf("look %d is %+v", i, r)
			}
		}
		if len(s.asked) != 14 {
			t.Errorf("there were %d looks, want 14", len(s.asked))
		}
	})
}

// formOf returns what the form of a page sends whose button takes the step. Nil: there is none.
func formOf(t *testing.T, page, step string) url.Values {
	t.Helper()
	tree, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range tree.Descendants() {
		if n.Data != "form" {
			continue
		}
		form := url.Values{}
		for field := range n.Descendants() {
			attr := map[string]string{}
			for _, a := range field.Attr {
				attr[a.Key] = a.Val
			}
			if field.Data == "input" || field.Data == "button" {
				form.Set(attr["name"], attr["value"])
			}
		}
		if form.Get("step") == step {
			return form
		}
	}
	return nil
}
