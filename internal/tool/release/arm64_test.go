package release

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestArm64: the program for arm64 runs under qemu, and an event goes through it.
func TestArm64(t *testing.T) {
	program := one(t, "new/bin/linux_arm64/hookonce")
	arm := func(words ...string) *exec.Cmd {
		c := exec.Command("qemu-aarch64-static", append([]string{program}, words...)...)
		c.Dir = t.TempDir()
		return c
	}
	if out, err := arm("version").CombinedOutput(); err != nil || !strings.Contains(string(out), "linux/arm64") {
		t.Fatalf("version: %v\n%s", err, out)
	}
	booked := make(chan string, 10)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { booked <- r.Header.Get("Idempotency-Key") }))
	defer app.Close()
	serve := arm("serve", "--to", app.URL, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	serve.Stderr = os.Stderr
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		if err := serve.Wait(); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	var endpoint string
	lines := bufio.NewScanner(out)
	for endpoint == "" && lines.Scan() {
		for _, word := range strings.Fields(lines.Text()) {
			if strings.HasPrefix(word, "http://127.0.0.1:") && strings.HasSuffix(word, "/in/dev") {
				endpoint = word
			}
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	if out, err := arm("send", endpoint, "--id", "from_arm", "--copies", "2", "--secret", "file:"+filepath.Join(serve.Dir, "hookonce.dev-secret")).CombinedOutput(); err != nil {
		t.Fatalf("send: %v\n%s", err, out)
	}
	if key := <-booked; !strings.Contains(key, "from_arm") {
		t.Errorf("booked %q", key)
	}
	if out, err := arm("doctor", "--store", "sqlite:"+filepath.Join(serve.Dir, "hookonce.db")).CombinedOutput(); err != nil {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}
