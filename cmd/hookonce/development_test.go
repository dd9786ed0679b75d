package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/provider"
)

// The first event in one's own app takes the two commands of the README, and no file; also when the app is
// started after them, which is when somebody finds out that it does not run. The app trusts nobody: it verifies
// what it gets with the secret that the gateway made up.
func TestFirstEventTakesTwoCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	serve := regexp.MustCompile(`(?m)^hookonce (serve --to )http://localhost:3000(/\S+)`).FindSubmatch(readme)
	send := regexp.MustCompile(`(?m)^hookonce (send )http://127.0.0.1:8080(/\S+ .*?) *#`).FindSubmatch(readme)
	if serve == nil || send == nil {
		t.Fatal("the README has not got the two commands")
	}
	dir := t.TempDir()
	app := reserved(t)
	env := append(os.Environ(), "HOOKONCE_LISTEN=127.0.0.1:0", "HOOKONCE_ADMIN=127.0.0.1:0")
	p, err := launch(dir, env, strings.Fields(string(serve[1])+"http://"+app.Addr().String()+string(serve[2]))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() }) // which fails if it ended
	cmd := exec.Command("hookonce", strings.Fields(string(send[1])+"http://"+p.addr+string(send[2]))...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("200 OK")) {
		t.Fatalf("%v\n%s", err, out)
	}
	shown(t, p, `(?m)^\d\d:\d\d:\d\d  received   invoice.paid  msg_\w{27}$`)
	shown(t, p, `(?m)^\d\d:\d\d:\d\d  failed     invoice.paid  msg_\w{27}  connection refused; tried again in [\d.]+ s$`)

	secret, err := os.ReadFile(filepath.Join(dir, "hookonce.dev-secret"))
	if err != nil {
		t.Fatal(err)
	}
	verifier := provider.Standard(strings.TrimSpace(string(secret)))
	got := make(chan error, 10)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, err := verifier.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()})
		got <- err
	})}
	l, err := net.Listen("tcp", app.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	defer server.Close()
	if err := <-got; err != nil {
		t.Errorf("the app does not trust what it got: %v", err)
	}
	shown(t, p, `(?m)^\d\d:\d\d:\d\d  delivered  invoice.paid  msg_\w{27}  200 in \S+$`)
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// reserved returns a listener whose port nobody has: it is closed already.
func reserved(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l
}

// shown waits for a line on the standard output of a gateway.
func shown(t *testing.T, p *process, line string) {
	t.Helper()
	form := regexp.MustCompile(line)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if form.MatchString(p.out.String()) {
			return
		}
	}
	t.Fatalf("waited %v for %s in:\n%s", patience, line, p.out)
}

// A delivery that is faster than the answer to the sender comes after the line that says what it delivers, and
// whoever does not read holds up nothing.
func TestShow(t *testing.T) {
	var out transcript
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

// Whoever read the lines may leave: the gateway goes on.
func TestDevelopmentOutlivesItsReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("hookonce", "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json")
	cmd.Dir, cmd.Stdout = dir, w
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() // which fails if it ended
	w.Close()
	first := bufio.NewReader(r)
	for line := ""; !strings.HasPrefix(line, "Events as they come"); {
		if line, err = first.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	text, err := bufio.NewReader(log).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := regexp.MustCompile(`"listen":"([^"]+)"`).FindStringSubmatch(text)
	if addr == nil {
		t.Fatal(text)
	}
	for range 3 {
		res, err := http.Post("http://"+addr[1]+"/in/nowhere", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		<-time.After(20 * time.Millisecond)
	}
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
