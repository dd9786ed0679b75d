//go:build linux

package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/internal/traffic"
)

// TestAttacks makes each attack in small, so that the bounds do not rot between two runs of "make attack". That
// genuine requests are answered in time is judged there: here there are a few dozen, and other tests beside them.
func TestAttacks(t *testing.T) {
	testskip.Long(t)
	if testing.Short() {
		t.Skip("starts a gateway for each attack: run without -short")
	}
	rn, err := openRunner(t.Context(), settings{dir: t.TempDir(), store: "sqlite", duration: 500 * time.Millisecond, small: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rn.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, a := range attacks {
		if a.variant {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			r, err := rn.play(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range r.Broken {
				t.Error(b)
			}
		})
	}
}

// Every bound that a result is judged by can be broken.
func TestJudge(t *testing.T) {
	all := seen{Sent: 100, InTime: 100}
	for want, spoil := range map[string]func(*result){
		"":                     func(*result) {},
		"genuine requests: 98": func(r *result) { r.Genuine.InTime = 98 },
		"/healthz: 0":          func(r *result) { r.Health.InTime = 0 },
		"/readyz: 98":          func(r *result) { r.Ready.InTime = 98 },
		"memory: 2 MiB":        func(r *result) { r.Memory = 2 << 20 },
		"lines: 11":            func(r *result) { r.Lines = 11 },
		"1 lost":               func(r *result) { r.Lost = 1 },
		"1 delivered twice":    func(r *result) { r.Doubled = 1 },
		"of its own":           func(r *result) { r.Broken = []string{"of its own"} },
	} {
		r := result{Genuine: all, Health: all, Ready: all, MemoryBound: 1 << 20, LinesBound: 10}
		spoil(&r)
		r.judge(attack{}, leastShare)
		got := strings.Join(r.Broken, "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("judged %q, want %q", got, want)
		}
		if holds := strings.Contains(r.row(), "| holds"); holds != (want == "") {
			t.Errorf("%q: the table says holds: %v", want, holds)
		}
	}
}

// A steady sender counts what comes late, and what does not come.
func TestSteadyCounts(t *testing.T) {
	s := seen{}
	s.add(200, nil, time.Second)
	s.add(200, nil, time.Second+1)
	s.add(503, nil, time.Millisecond)
	s.add(0, os.ErrDeadlineExceeded, giveUp)
	if s.Sent != 4 || s.InTime != 1 || s.Others["late"] != 1 || s.Others["503"] != 1 || s.Others["no answer"] != 1 {
		t.Errorf("counted %+v", s)
	}
}

func TestOnlyThisMachineIsAttacked(t *testing.T) {
	for _, address := range []string{"192.0.2.1:80", "example.com:80", "[2001:db8::1]:80", "0.0.0.0:80", ""} {
		if c, err := dial(t.Context(), address, net.IPv4(127, 0, 0, 1)); err == nil {
			c.Close()
			t.Errorf("%q is dialled", address)
		}
	}
}

// Answers that come together are read one by one.
func TestReceive(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_, _ = theirs.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"))
		theirs.Close()
	}()
	var in []byte
	for _, want := range []int{200, 503} {
		var r traffic.Response
		var err error
		if r, in, err = receive(ours, in); err != nil || r.Status != want {
			t.Errorf("%d, %v, want %d", r.Status, err, want)
		}
	}
	if _, _, err := receive(ours, in); err == nil {
		t.Error("an answer that did not come is read")
	}
}

// TestChoose: attacks are chosen by the beginnings of their names.
func TestChoose(t *testing.T) {
	for only, want := range map[string]int{"": len(attacks), "calm": 1, "sqlite-": 6, "calm,tenant": 2, "nothing": 0} {
		chosen, err := choose(settings{only: only, store: "sqlite"})
		if len(chosen) != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v, want %d", only, len(chosen), err, want)
		}
	}
	if _, err := choose(settings{only: "sqlite-", store: "postgres"}); err == nil {
		t.Error("attacks on a file are made without one")
	}
}

var named = regexp.MustCompile("`attack/([a-z0-9-]+)`")

// TestSecurityPageNamesAttacks: the table of threats names each attack, and none that there is not.
func TestSecurityPageNamesAttacks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := map[string]bool{}
	for _, m := range named.FindAllSubmatch(text, -1) {
		page[string(m[1])] = true
	}
	for _, a := range attacks[1:] {
		if !page[a.name] && !a.variant {
			t.Errorf("docs/security.md does not name `attack/%s`", a.name)
		}
		delete(page, a.name)
	}
	for name := range page {
		t.Errorf("docs/security.md names `attack/%s`, which there is not", name)
	}
}
