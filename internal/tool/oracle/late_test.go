package oracle

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// application is one that verifies its provider with the official library, and was written for that provider alone.
type application struct {
	source, provider, secret string
	to                       string // where it is
	appURL                   string // where it believes to be
	lenient                  string // why it accepts what is late
}

// squareURL is what the application was registered with: it verifies no other.
const squareURL = "https://shop.example/square"

// inNode are the programs in node/apps.mjs.
func inNode(base string) []application {
	lasting := "its signature has no time"
	return []application{
		{source: "stripe", provider: "stripe", to: base + "/stripe"},
		{source: "svix", provider: "svix", secret: whsec, to: base + "/svix"},
		{source: "standard", provider: "standard", secret: whsec, to: base + "/standard"},
		{source: "slack", provider: "slack", to: base + "/slack"},
		{source: "twilio", provider: "twilio", to: base + "/twilio"},
		{source: "github", provider: "github", to: base + "/github", lenient: lasting},
		{source: "shopify", provider: "shopify", to: base + "/shopify", lenient: lasting},
		{source: "square", provider: "square", to: base + "/square", appURL: squareURL},
	}
}

// inGo are applications with the libraries for Go, as far as the signatures can be made anew.
func inGo(t *testing.T, base string) (apps []application) {
	for _, s := range sdks() {
		p := s.build(t)
		renewal, _ := p.Renewal()
		if renewal == spec.Fixed {
			continue
		}
		a := application{source: "go-" + s.provider, provider: s.provider, secret: s.secret, to: base + "/" + s.provider}
		switch {
		case renewal == spec.Lasts:
			a.lenient = "its signature has no time"
		case timeless[s.provider] != "":
			a.lenient = timeless[s.provider]
		}
		apps = append(apps, a)
	}
	return apps
}

// timeless are the libraries that do not look at the signed time.
var timeless = map[string]string{
	"paddle": "paddle-go-sdk compares the signature alone",
	"twitch": "helix compares the signature alone",
}

// TestApplicationsAcceptWhatIsLate: events wait in the gateway for an hour and for a week, and then the applications
// accept every one. Left as they came, they are rejected wherever the library looks at the time or the URL.
func TestApplicationsAcceptWhatIsLate(t *testing.T) {
	testskip.Long(t)
	for _, late := range []time.Duration{time.Hour, 7 * 24 * time.Hour} {
		t.Run(late.String(), func(t *testing.T) {
			answers := make(chan string, 1024)
			apps := append(inNode(startNode(t, answers)), inGo(t, startGo(t, answers))...)
			store := filepath.Join(t.TempDir(), "hookonce.db")
			then := time.Now().Add(-late)

			// Nobody is there when the events come.
			g := start(t, settings(store, apps, "http://127.0.0.1:9/"), func() time.Time { return then })
			for _, a := range apps {
				send(t, g, a, a.source, then)
				send(t, g, a, a.source+asItCame, then)
			}
			if err := g.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			start(t, settings(store, apps, ""), time.Now)
			verdicts := collect(t, answers, 2*len(apps))
			for _, a := range apps {
				if status := verdicts[a.source]; status/100 != 2 {
					t.Errorf("%s: an event of %s, %v late, is answered %d", a.source, a.provider, late, status)
				}
				if status := verdicts[a.source+asItCame]; (status/100 == 2) != (a.lenient != "") {
					t.Errorf("%s: as it came, %v late, an event of %s is answered %d", a.source, late, a.provider, status)
				}
			}
		})
	}
}

// asItCame is behind the name of a source whose signatures are left alone.
const asItCame = "-as-it-came"

// settings is the configuration of a gateway in front of the applications, or of another address.
func settings(store string, apps []application, elsewhere string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: %q\nsources:\n", "sqlite:"+store)
	for _, a := range apps {
		for _, name := range []string{a.source, a.source + asItCame} {
			fmt.Fprintf(&b, "  - name: %s\n    provider: %s\n    secrets: [%q]\n    url: %s\n    to: %s\n",
				name, a.provider, cmp.Or(a.secret, secret), endpoint, cmp.Or(elsewhere, a.to))
			if name != a.source {
				b.WriteString("    sign_as: none\n")
			} else if a.appURL != "" {
				fmt.Fprintf(&b, "    app_url: %s\n", a.appURL)
			}
		}
	}
	return b.String()
}

// start runs a gateway until the test ends.
func start(t *testing.T, settings string, now func() time.Time) *gateway.Gateway {
	t.Helper()
	cfg, err := config.Load(config.Input{Path: "hookonce.yaml", Data: []byte(settings), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Start(t.Context(), cfg, gateway.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// send posts the sample of a provider, signed at a time.
func send(t *testing.T, g *gateway.Gateway, a application, source string, at time.Time) {
	t.Helper()
	p, err := provider.Build(a.provider, spec.Settings{Secrets: spec.Secrets(cmp.Or(a.secret, secret)), URL: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	header, body := p.Spec().Sample(spec.Sample{ID: "101", Time: at})
	req := &hookonce.Request{Method: http.MethodPost, URL: endpoint, Header: header, Body: body, Now: at}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.Addr().String()+"/in/"+source, bytes.NewReader(req.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = req.Header
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode/100 != 2 {
		t.Fatalf("%s: the gateway answers %d %s", source, response.StatusCode, text)
	}
}

// collect returns the first status that each source was answered with.
func collect(t *testing.T, answers <-chan string, sources int) map[string]int {
	t.Helper()
	verdicts := map[string]int{}
	timeout := time.After(time.Minute)
	for len(verdicts) < sources {
		select {
		case line := <-answers:
			var source string
			var status int
			if _, err := fmt.Sscan(line, &source, &status); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if _, again := verdicts[source]; !again {
				verdicts[source] = status
			}
		case <-timeout:
			t.Fatalf("%d of %d have answered: %v", len(verdicts), sources, verdicts)
		}
	}
	return verdicts
}

// startNode starts the programs in Node, and returns where they are.
func startNode(t *testing.T, answers chan<- string) string {
	t.Helper()
	if _, err := os.Stat("node/node_modules"); err != nil {
		t.Fatalf("%v: the libraries are not installed; run make oracle", err)
	}
	node := exec.CommandContext(t.Context(), "node", "apps.mjs")
	node.Dir, node.Stderr = "node", os.Stderr
	node.Env = append(os.Environ(), "SECRET="+secret, "WHSEC="+whsec, "SQUARE_URL="+squareURL)
	output, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	var port string
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "listening %s", &port); err == nil {
			break
		}
	}
	if port == "" {
		t.Fatal("node apps.mjs does not listen")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			answers <- lines.Text()
		}
	}()
	t.Cleanup(func() { <-ended; _ = node.Wait() }) // the context of the test has ended it
	return "http://127.0.0.1:" + port
}

// startGo starts an application for each library, and returns where they are.
func startGo(t *testing.T, answers chan<- string) string {
	t.Helper()
	mux := http.NewServeMux()
	for _, s := range sdks() {
		mux.HandleFunc("POST /"+s.provider, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			status := http.StatusUnauthorized
			if s.accepts(&hookonce.Request{Method: r.Method, URL: "http://" + r.Host + r.RequestURI, Header: r.Header, Body: body, Now: time.Now()}) {
				status = http.StatusNoContent
			}
			w.WriteHeader(status)
			answers <- fmt.Sprint(r.Header.Get("Hookonce-Source"), " ", status)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
