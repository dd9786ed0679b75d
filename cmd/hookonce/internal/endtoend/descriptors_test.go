//go:build linux

package endtoend

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A gateway that may have few file descriptors has few connections, and keeps descriptors for people; and when there are none
// left all the same, it says so, and people and senders are answered.
func TestFewDescriptors(t *testing.T) {
	dir := t.TempDir()
	p, err := launchCommand(exec.Command("sh", "-c", `ulimit -n 160; exec hookonce serve --listen 127.0.0.1:0 --admin 127.0.0.1:0`), dir, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	p.endWith(t)
	hold := func(n int, address string) {
		for i := range n {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i))}, Timeout: patience}
			c, err := d.DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		}
	}
	ask := func(method, url string, want int) string {
		t.Helper()
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		res, err := c.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", method, url, err)
			return ""
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != want || time.Since(began) > patience/6 {
			t.Errorf("%s %s answered %d after %s, want %d", method, url, res.StatusCode, time.Since(began), want)
		}
		return string(text)
	}
	all := func() {
		t.Helper()
		ask("POST", "http://"+p.addr+"/in/dev", http.StatusUnauthorized) // without a signature
		ask("GET", "http://"+p.admin+"/healthz", http.StatusOK)
		ask("GET", "http://"+p.admin+"/readyz", http.StatusOK)
	}
	hold(300, p.addr)
	hold(60, p.admin)
	all()
	if text := ask("GET", "http://"+p.admin+"/metrics", http.StatusOK); !strings.Contains(text, `hookonce_connections_max{listener="listen"} 80`) ||
		!strings.Contains(text, `hookonce_connections_max{listener="admin"} 20`) || !strings.Contains(text, `hookonce_descriptors_exhausted_total{listener="listen"} 0`) ||
		!strings.Contains(text, `hookonce_descriptors_exhausted_total{listener="admin"} 0`) {
		t.Errorf("the connections of a process with 160 descriptors are %s", grep(text, "hookonce_connections_max", "hookonce_descriptors"))
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if len(open) > 150 {
		t.Errorf("%d of 160 descriptors are in use", len(open))
	}
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)) / 2, Max: 160}, nil); err != nil {
		t.Fatal(err)
	}
	hold(20, p.addr)
	all()
	if text := ask("GET", "http://"+p.admin+"/metrics", http.StatusOK); strings.Contains(text, `hookonce_descriptors_exhausted_total{listener="listen"} 0`) {
		t.Errorf("the metrics do not tell: %s", grep(text, "hookonce_connections", "hookonce_descriptors"))
	}
	log := p.log.String()
	if n := strings.Count(log, "there are no file descriptors left; raise ulimit -n"); n == 0 || n > 200 {
		t.Errorf("%d lines of the log say that there are no descriptors left", n)
	}
}

// grep returns the lines that have one of the texts in them.
func grep(text string, parts ...string) (found []string) {
	for line := range strings.Lines(text) {
		for _, part := range parts {
			if strings.HasPrefix(line, part) {
				found = append(found, line)
			}
		}
	}
	return found
}
