package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// The command that stands beside a refusal, with the body, the secret and the values of the headers filled in, tells the
// reason for which the gateway refused the request.
func TestRefusalCommandTellsTheSame(t *testing.T) {
	for _, name := range []string{"github", "shopify", "slack", "standard", "stripe"} {
		known, _ := provider.Lookup(name)
		secret := secretFor(known)
		req := capture(t, name, secret)
		p, err := spec.New(known, spec.Settings{Secrets: spec.Secrets(secret)})
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range map[string]func(*hookonce.Request){
			"another body": func(r *hookonce.Request) { r.Body = append(r.Body, ' ') },
			"no headers":   func(r *hookonce.Request) { r.Header = http.Header{"User-Agent": {"x"}} },
			"an hour late": func(r *hookonce.Request) { r.Now = r.Now.Add(time.Hour) },
			"a challenge":  func(r *hookonce.Request) { r.Method, r.Body = http.MethodGet, nil },
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				r := *req
				r.Header = req.Header.Clone()
				damage(&r)
				_, err := p.Open(&r)
				var reject *hookonce.RejectError
				if !errors.As(err, &reject) {
					if what == "an hour late" { // to whom no time is signed
						return
					}
					t.Fatal(err)
				}
				refused := refusals.Refusal{At: r.Now, Source: "billing", Method: r.Method, Unverified: true, Headers: refusals.Names(r.Header)}
				out := verifyAs(t, refused.Command(name, false), secret, &r)
				said := map[string]string{}
				for text := range strings.Lines(out) {
					what, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
					said[what] = strings.TrimSpace(rest)
				}
				if said["reason"] != reject.Reason || said["why"] != reject.Detail {
					t.Errorf("%s\nsays %s\nwant %s", refused.Command(name, false), out, reject)
				}
			})
		}
	}
}

// capture returns a genuine request of a provider.
func capture(t *testing.T, name, secret string) (req *hookonce.Request) {
	t.Helper()
	url := endpoint(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req = &hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now().Truncate(time.Second)} // as the command says it
	}))
	if status, out := sentBy(t, "--provider", name, "--secret", secret, "--to", url, "--id", "first"); status != exitOK {
		t.Fatal(out)
	}
	return req
}

// verifyAs fills in what stands in capitals, runs the command and returns what it says.
func verifyAs(t *testing.T, command, secret string, r *hookonce.Request) string {
	t.Helper()
	split, err := exec.Command("sh", "-c", "set -- "+strings.ReplaceAll(command, "--body FILE", "--body "+writeBody(t, r.Body))+`; printf '%s\n' "$@"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSpace(string(split)), "\n")
	for i, word := range words {
		if name, ok := strings.CutSuffix(word, ": VALUE"); ok {
			words[i] = name + ": " + r.Header.Get(name)
		}
	}
	var text bytes.Buffer
	execute(&env{args: words, environ: []string{"BILLING_SECRET=" + secret}, in: strings.NewReader(""), out: &text, err: &text})
	return text.String()
}

func writeBody(t *testing.T, body []byte) string {
	t.Helper()
	path := t.TempDir() + "/body"
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A gateway that refused nothing, and one that refused more than it remembers, say so.
func TestPrintRefusals(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"refusals":[{"at":"2026-11-21T12:00:00Z","address":"192.0.2.1","method":"POST","path":"/in/b\u001b[2J","status":413,"reason":"too_large","words":"The body is larger.","headers":["A\u001b"],"body":{"bytes":9,"sha256":"ab"}}],"total":500}`)
	}))
	defer gateway.Close()
	var text bytes.Buffer
	execute(&env{args: []string{"hookonce", "refusals", "billing", "--admin", gateway.URL}, in: strings.NewReader(""), out: &text, err: &text})
	for _, want := range []string{"413 too_large  POST /in/b", "why       The body is larger.", "body      9 bytes, SHA-256 ab", "There were 500"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Errorf("a stranger steers the terminal: %q", text.String())
	}
}
