package endtoend

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/gateway"
)

// gatewayIn launches a gateway on a configuration in a folder of its own, whose writer it returns.
func gatewayIn(t *testing.T, text string) (p *process, write func(string)) {
	t.Helper()
	dir := t.TempDir()
	write = func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "hookonce.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	return mustLaunch(t, dir, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"), write
}

const oneSource = "sources:\n  - name: billing\n    provider: standard\n    secrets: [whsec_b2xkLXNlY3JldA==]\n"

// status returns how an address of a process answers.
func status(t *testing.T, url string) int {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// Case 6: SIGHUP has the configuration read again, and kills nobody, whatever the file holds.
func TestSIGHUPReloads(t *testing.T) {
	t.Parallel()
	p, write := gatewayIn(t, oneSource)
	for _, step := range []struct{ file, log string }{
		{oneSource, "gateway: reloaded; nothing has changed"},
		{"log: {level: debug}\n" + oneSource, "log.level changed (info → debug)"},
		{"log: {level: loud}\n" + oneSource, "hookonce.yaml:1:14: log.level"},
		{"store: sqlite:other.db\n" + oneSource, "needs a restart: store; nothing was changed"},
		{"", "no source is configured"},
	} {
		write(step.file)
		if err := p.signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.awaitLog(t, step.log)
		if got := status(t, "http://"+p.admin+"/readyz"); got != http.StatusOK {
			t.Errorf("after %q /readyz is %d", step.log, got)
		}
	}
	for range 20 { // at once
		_ = p.signal(syscall.SIGHUP)
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// Case 6: a reload that comes while the file is not there, as some editors and deployments have it for a moment, does
// not take what is left for the configuration: the source stays.
func TestReloadWithoutTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(path, []byte(oneSource), 0o600); err != nil {
		t.Fatal(err)
	}
	p := mustLaunch(t, dir, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := p.signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "the configuration file hookonce.yaml is not there any more; put it back")
	if got := status(t, "http://"+p.addr+"/in/billing"); got != http.StatusMethodNotAllowed {
		t.Errorf("the source is gone: a GET is answered %d", got)
	}
	if err := os.Rename(path+".old", path); err != nil {
		t.Fatal(err)
	}
	if err := p.signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "gateway: reloaded; nothing has changed")
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// A command that has nothing to read again ends in order at SIGHUP, as when its terminal is closed.
func TestSIGHUPEndsWhatReadsNothing(t *testing.T) {
	t.Parallel()
	here := make(chan os.Signal, 1)
	signal.Notify(here, syscall.SIGHUP) // whoever runs the tests may ignore it (nohup), which processes inherit
	defer signal.Stop(here)
	_, dsn := openOutbox(t)
	p, err := launchSilent(t.TempDir(), os.Environ(), "dashboard", "--listen", "127.0.0.1:0", "--store", dsn)
	if err != nil {
		t.Fatal(err)
	}
	p.endWith(t)
	for deadline := time.Now().Add(patience); !strings.Contains(p.out.String(), "/ shows "); time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatalf("it shows nothing\n%s", p.log)
		}
	}
	if err := p.end(syscall.SIGHUP); err != nil {
		t.Errorf("ended with %v\n%s", err, p.log)
	}
}

// Whoever collects the log may leave: the gateway goes on, with events, deliveries and answers, and
// stops in order.
func TestTheLogMayHaveNoReader(t *testing.T) {
	t.Parallel()
	delivered := make(chan struct{}, 10)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { delivered <- struct{}{} }))
	defer app.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hookonce.yaml"), []byte(oneSource+"    to: "+app.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(serving, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() // which fails if it ended
	w.Close()
	var bound []string
	for log := bufio.NewReader(r); bound == nil; {
		line, err := log.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		bound = runningLine.FindStringSubmatch(line)
	}
	r.Close()
	for range 2 {
		if code, out := command(append(os.Environ(), "SECRET=whsec_b2xkLXNlY3JldA=="), "send", "--provider", "standard", "--secret", "env:SECRET", "--to", "http://"+bound[1]+"/in/billing"); code != 0 {
			t.Fatal(out)
		}
		select {
		case <-delivered:
		case <-time.After(patience):
			t.Fatal("an event was not delivered")
		}
		res, err := http.Post("http://"+bound[1]+"/in/billing", "application/json", nil) // which is refused, and logged
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if got := status(t, "http://"+bound[2]+"/healthz"); got != http.StatusOK {
		t.Errorf("/healthz is %d", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// Case 6: for shutdown_delay after the first signal /readyz says 503 and requests are served. A second signal ends
// the delay, and the stop is clean.
func TestSecondSignalEndsTheDelay(t *testing.T) {
	t.Parallel()
	p, _ := gatewayIn(t, "shutdown_delay: 10m\nshutdown_timeout: 20m\n"+oneSource)
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "gateway: stopping")
	for deadline := time.Now().Add(patience); status(t, "http://"+p.admin+"/readyz") != http.StatusServiceUnavailable; time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatal("/readyz does not say that it stops")
		}
	}
	if got := status(t, "http://"+p.addr+"/in/billing"); got != http.StatusMethodNotAllowed {
		t.Errorf("a request during the delay was answered %d", got)
	}
	<-time.After(gateway.SameSignal) // an earlier one would be the first signal again
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Errorf("ended with %v\n%s", err, p.log)
	}
	p.awaitLog(t, "gateway: the rest of the delay is left out")
	p.awaitLog(t, "gateway: stopped")
}
