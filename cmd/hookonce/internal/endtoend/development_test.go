package endtoend

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/provider"
)

// The first event in one's own app takes the two commands of the README, and no file; also when the app is
// started after them, which is when somebody finds out that it does not run. The app trusts nobody: it verifies
// what it gets with the secret that the gateway made up.
func TestFirstEventTakesTwoCommands(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	serve := regexp.MustCompile(`(?m)^hookonce (serve --to )http://localhost:3000(/\S+)`).FindSubmatch(readme)
	send := regexp.MustCompile(`(?m)^hookonce (send )http://127.0.0.1:8080(/\S+ .*?) *#`).FindSubmatch(readme)
	if serve == nil || send == nil {
		t.Fatal("the README has not got the two commands")
	}
	dir := t.TempDir()
	port, err := throwaway.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	app := fmt.Sprintf("127.0.0.1:%d", port) // where nobody listens yet
	env := append(os.Environ(), "HOOKONCE_LISTEN=127.0.0.1:0", "HOOKONCE_ADMIN=127.0.0.1:0")
	p, err := launch(dir, env, strings.Fields(string(serve[1])+"http://"+app+string(serve[2]))...)
	if err != nil {
		t.Fatal(err)
	}
	p.endWith(t)
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
	l, err := net.Listen("tcp", app)
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

// shown waits for a line on the standard output of a gateway.
func shown(t *testing.T, p *process, line string) {
	t.Helper()
	form := regexp.MustCompile(line)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(look) {
		if form.MatchString(p.out.String()) {
			return
		}
	}
	t.Fatalf("waited %v for %s in:\n%s", patience, line, p.out)
}

// Whoever read the lines may leave: the gateway goes on.
func TestDevelopmentOutlivesItsReader(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(serving, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json")
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
