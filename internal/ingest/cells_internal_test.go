package ingest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/cells"
)

// An answer of another cell is passed on if it says of each event that was handed on what became of it.
func TestAnswersAccountForEveryEvent(t *testing.T) {
	for counts, want := range map[string]error{
		"1,0,1,0,0": nil, "0,0,0,0,0": cells.ErrDisagree, "1,0,0,0,0": cells.ErrDisagree, "3,0,0,0,0": cells.ErrDisagree, "2": cells.ErrRefused, "": cells.ErrRefused,
	} {
		if _, err := accounted(&cells.Answer{Counts: counts}, 2); !errors.Is(err, want) {
			t.Errorf("two events are answered %q: %v, want %v", counts, err, want)
		}
	}
}

// A sender that needs an answer of its own gets that one also for counts of another cell, which may know no better.
func TestCountsAreAnsweredAsTheSenderNeedsIt(t *testing.T) {
	in := &arrival{delivery: &hookonce.Verified{Events: []hookonce.Event{{Key: "evt_1"}}}}
	for name, e := range map[string]*endpoint{"evt_1": {}, "[OK]": {required: required(hookonce.Answer{Body: []byte("[OK]")})}} {
		if got := e.passed(in, &cells.Answer{}, statusCounts{accepted: 1}); got.status != http.StatusOK || !strings.Contains(string(got.body), name) {
			t.Errorf("answered %d %s, want %s", got.status, got.body, name)
		}
	}
}

// What another cell cannot take now is told as what this one cannot: that cells are configured differently is said of nothing else.
func TestBusyElsewhereIsNoDisagreement(t *testing.T) {
	disagree := []*refusal{errCellRefused, errPanic, errUnspecified, errTooMany, errNotAllowed, errCrowded} // the last three it does not look at
	for _, p := range allRefusals() {
		want := p.Status == http.StatusServiceUnavailable && !slices.Contains(disagree, p)
		if got := refusalOf(&cells.RefusedError{Cell: "b", Reason: p.Reason}); (got != errCellRefused) != want || want && got.Reason != p.Reason {
			t.Errorf("another cell could not take it, %s: told as %s", p.Reason, got.Reason)
		}
	}
}

// Another cell sees the address of a request as the cell where it came.
func TestRequestsAreSeenElsewhereAsTheyAreHere(t *testing.T) {
	for i, line := range []string{
		"/in/s?a=b#c HTTP/1.1\r\nHost: h.example", "/in/s?token=x HTTP/1.1\r\nHost: h.example:abc", "/in/s HTTP/1.1\r\nHost: a%20b",
		"/in/s? HTTP/1.1\r\nHost: h", "/in/s/%2f/x HTTP/1.1\r\nHost: h", "/in/s/x#y HTTP/1.1\r\nHost: h", "//in/s HTTP/1.1\r\nHost: h",
		"/in/s HTTP/1.1\r\nHost: user@h", "/in/s HTTP/1.1\r\nHost: [::1", "/in/s HTTP/1.0", "/in/s?x=\xe9 HTTP/1.1\r\nHost: h",
		"/in/s?a=%zz HTTP/1.1\r\nHost: h", "http://other/in/s HTTP/1.1\r\nHost: h",
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("POST " + line + "\r\n\r\n")))
		if err != nil {
			t.Errorf("%q: not a request: %v", line, err)
			continue
		}
		in := &cells.Request{Source: "s", Method: r.Method, TLS: i%2 == 0, Host: r.Host, Target: r.URL.RequestURI(), Address: "192.0.2.1", Header: r.Header}
		if in.TLS {
			r.TLS = new(tls.ConnectionState)
		}
		got, err := sent(t.Context(), in)
		if err != nil {
			t.Errorf("%q: another cell refuses it: %v", line, err)
		} else if SeenURL(got) != SeenURL(r) || got.Host != r.Host {
			t.Errorf("%q is seen as %q by its own cell, and as %q by another", line, SeenURL(r), SeenURL(got))
		}
	}
	if _, err := sent(t.Context(), &cells.Request{Method: "POST", Target: "no target?token=of-nobody"}); err == nil || strings.Contains(err.Error(), "of-nobody") {
		t.Errorf("what is no target: %v; want an error that does not repeat it", err)
	}
}

// Whoever waits in another cell is answered before he gives up.
func TestAnotherCellIsAnsweredInTime(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{0: time.Minute, 10 * time.Second: 9750 * time.Millisecond, time.Second: 900 * time.Millisecond, time.Hour: time.Minute} {
		if got := (&arrival{hop: &cells.Hop{Left: left}}).within(time.Minute); got != want {
			t.Errorf("with %s left it takes %s, want %s", left, got, want)
		}
	}
	if got := new(arrival).within(time.Minute); got != time.Minute {
		t.Errorf("where it came it takes %s", got)
	}
}

// What is found on record is taken off what another cell counts: copies first, and what differs from its first only then.
func TestWithoutWhatIsOnRecord(t *testing.T) {
	for found, want := range map[int]statusCounts{
		0: {accepted: 1, duplicates: 2, conflicts: 1}, 1: {accepted: 1, duplicates: 1, conflicts: 1},
		3: {accepted: 1}, 9: {accepted: 1},
	} {
		counts := statusCounts{accepted: 1, duplicates: 2, conflicts: 1}
		if counts.without(found); counts != want {
			t.Errorf("without %d: %+v, want %+v", found, counts, want)
		}
	}
}
