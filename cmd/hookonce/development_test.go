package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// A delivery that is faster than the answer to the sender comes after the line that says what it delivers, and
// whoever does not read holds up nothing.
func TestShow(t *testing.T) {
	var out bytes.Buffer
	s := newShow(&out)
	e := &hookonce.Event{Key: "evt_1", Type: "paid"}
	w := &journal.Work{Held: journal.Held{EventID: 7, Token: 1}, Key: "evt_1", Type: "paid", ReceivedAt: time.Now().Add(time.Second)}
	s.Attempted(w, journal.Outcome{State: journal.Done, Status: 204, Duration: 3 * time.Millisecond})
	s.Stored("dev", e, journal.Result{ID: 7, Status: journal.Accepted}, true)
	s.Stored("dev", e, journal.Result{ID: 7, Status: journal.Conflict}, true)
	s.Stored("dev", &hookonce.Event{Type: "odd\x1b[2J"}, journal.Result{ID: 8, Status: journal.Unkeyed}, false)
	s.Attempted(w, journal.Outcome{State: journal.Dead, Error: "status 410"})
	s.Greeted("dev")
	s.close()
	s.Greeted("dev") // and nothing panics
	want := []string{
		`  received   paid  evt_1`,
		`  delivered  paid  evt_1  204 in 3ms`,
		`  conflict   paid  evt_1  came before with other content; the first stands`,
		"  received   odd\uFFFD[2J  (no key: its copies cannot be recognised)  no route wanted it: stored, delivered nowhere",
		`  given up   paid  evt_1  status 410; not tried again unless its sender sends it again, or with hookonce events replay`,
		`  handshake  answered`,
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i := range want {
		if len(got) != len(want) || got[i][len("15:04:05"):] != want[i] {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestShowHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newShow(w)
		synctest.Wait()
		for i := range shownAhead + 500 {
			s.Stored("dev", &hookonce.Event{Key: fmt.Sprint(i)}, journal.Result{ID: int64(i + 1), Status: journal.Accepted}, true)
		}
		read := make(chan string, 1)
		go func() {
			all, _ := io.ReadAll(r)
			read <- string(all)
		}()
		synctest.Wait() // everything that was kept is written
		s.Greeted("dev")
		s.close()
		w.Close()
		all := <-read
		if n := strings.Count(all, "received"); n < shownAhead || n > shownAhead+1 || !strings.Contains(all, fmt.Sprintf("(%d lines were left out)", shownAhead+500-n)) {
			t.Errorf("%d lines, the last ones %s", n, all[max(len(all)-200, 0):])
		}
	})
}

// A terminal that is stopped, or a pipe that nobody empties, does not keep a gateway from ending.
func TestShowEndsWhenNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newShow(w)
		s.Greeted("dev")
		began := time.Now()
		s.close()
		if took := time.Since(began); took != lastWords {
			t.Errorf("it ended after %v", took)
		}
		r.Close()
	})
}

// What send makes up looks like the provider's own: an app may look at it.
func TestSendMakesTheProvidersKindOfID(t *testing.T) {
	for name, form := range map[string]string{
		"stripe":   `"id": "evt_[0-9A-Za-z]{24}"`,
		"slack":    `"event_id": "Ev[0-9A-Z]{8}"`,
		"github":   `X-Github-Delivery: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\r`,
		"shopify":  `X-Shopify-Event-Id: [0-9a-f]{8}-[0-9a-f]{4}-4`,
		"standard": `Webhook-Id: msg_[0-9A-Za-z]{27}\r`,
		"paddle":   `"event_id": "evt_01[0-9a-z]{24}"`,
	} {
		var got bytes.Buffer
		app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			r.Header.Write(&got)
			io.Copy(&got, r.Body)
		}))
		defer app.Close()
		var out bytes.Buffer
		w := &env{args: []string{"hookonce", "send", "--provider", name, "--secret", "whsec_ZmFrZSBzZWNyZXQ=", app.URL}, out: &out, err: &out}
		if status := execute(w); status != exitOK || !regexp.MustCompile(form).Match(got.Bytes()) {
			t.Errorf("%s: status %d, %s\n%s", name, status, &out, &got)
		}
	}
}
