package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/problem"
)

// What a health check is told is what a sender would be told: not that a process is there.
func TestStatusReady(t *testing.T) {
	for name, tt := range map[string]struct {
		answer   http.HandlerFunc
		status   int
		out, err string
	}{
		"ready": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ready\n")) }, 0, "ready\n", ""},
		"the store is away": {func(w http.ResponseWriter, _ *http.Request) {
			(&problem.Details{Status: http.StatusServiceUnavailable, Detail: "the store cannot be written to"}).Write(w)
		}, exitFailure, "", "the store cannot be written to\n"},
		"something else listens there": {http.NotFound, exitFailure, "", "the answer is 404 Not Found, and not from a gateway; name its admin listener with --admin\n"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					t.Errorf("it asked for %s", r.URL.Path)
				}
				tt.answer(w, r)
			}))
			defer srv.Close()
			var out, errs bytes.Buffer
			status := execute(&env{args: []string{"hookonce", "status", "--ready", "--admin", srv.URL}, in: strings.NewReader(""), out: &out, err: &errs})
			if status != tt.status || out.String() != tt.out || errs.String() != tt.err {
				t.Errorf("exit status %d, %q, %q", status, out.String(), errs.String())
			}
		})
	}
}

// A health check of a gateway with admin_tls needs no CA where it asks its own machine: it has
// nothing to tell that is secret. Whatever has a token to tell does.
func TestStatusReadyOverTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("it told a token")
		}
		w.Write([]byte("ready\n"))
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are refused
	srv.StartTLS()
	defer srv.Close()
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--ready"}, exitOK, "ready\n"},
		{nil, exitUsage, "certificate"},
	} {
		var out, errs bytes.Buffer
		e := &env{args: append([]string{"hookonce", "status", "--token", "env:TOKEN"}, tt.args...), in: strings.NewReader(""), out: &out, err: &errs,
			environ: []string{"HOOKONCE_ADMIN_URL=" + srv.URL, "TOKEN=a-fake-token-for-operators"}}
		if status := execute(e); status != tt.status || !strings.Contains(out.String()+errs.String(), tt.says) {
			t.Errorf("status %v: exit status %d, %q, %q", tt.args, status, out.String(), errs.String())
		}
	}
	for base, want := range map[string]bool{
		"https://127.0.0.1:8081/api/v1": true, "https://127.1.2.3": true, "https://[::1]:8081": true, "https://localhost:8081": true,
		"https://gateway.internal:8081": false, "https://10.0.0.1:8081": false, "https://localhost.example.com": false, "https://127.0.0.1.example.com": false,
	} {
		if got := (&adminClient{base: base}).here(); got != want {
			t.Errorf("%s is here: %v, want %v", base, got, want)
		}
	}
}

// What the store did not answer is said, with how old is what is shown of it.
func TestStatusNamesWhatIsOld(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"verdict":{"headline":"The store does not answer"},"at":"2026-11-22T12:30:00Z","parts":[{"name":"rows","read":"2026-11-22T12:29:00Z"},
			{"name":"open","error":"counting open work: timeout\u001b"},{"name":"hours","read":"2026-11-22T12:04:00Z","error":"timeout"},{"name":"marks"}]}`)
	}))
	defer server.Close()
	var out, log bytes.Buffer
	status := execute(&env{args: []string{"hookonce", "status", "--admin", server.URL}, out: &out, err: &log})
	want := "\n\nopen: could not be read yet (counting open work: timeout\uFFFD)\nhours: as of 2026-11-22 12:04:00Z (timeout)\nmarks: could not be read yet\n\nIn the last 24 hours"
	if status != exitFailure || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "rows") {
		t.Errorf("exit status %d, %s%s", status, &out, &log)
	}
}

// The exit status of status says whether something pages, and whether the gateway could be asked at all.
func TestStatusExit(t *testing.T) {
	for answer, want := range map[string]int{
		`200 {"verdict":{"healthy":true,"headline":"Everything is well"}}`:       exitOK,
		`200 {"verdict":{"healthy":false,"headline":"ledger has been failing"}}`: exitFailure,
		`503 {"title":"x","status":503,"detail":"the store took too long"}`:      exitUsage,
	} {
		status, body, _ := strings.Cut(answer, " ")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if status == "503" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, body)
		}))
		for _, form := range []string{"--json=false", "--json"} {
			var out, log bytes.Buffer
			got := execute(&env{args: []string{"hookonce", "status", form, "--admin", server.URL}, out: &out, err: &log})
			if said := out.Len() > 0; got != want || said != (status == "200") {
				t.Errorf("%s %s: exit status %d, want %d; %s%s", body, form, got, want, &out, &log)
			}
		}
		server.Close()
	}
}
