package deploy

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The npm package is what a person has who knows no Go: installed from its tarballs, without a registry, it runs the program,
// which delivers a first event, hears signals, and passes its exit status on.
func TestNPMPackage(t *testing.T) {
	programs, tarballs, project := t.TempDir(), t.TempDir(), t.TempDir()
	platform := runtime.GOOS + "_" + runtime.GOARCH
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(programs, platform, "hookonce"), "./cmd/hookonce")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	run(t, build)
	run(t, exec.Command("../../../scripts/npm", tarballs, "0.0.0-test", programs))
	files, err := filepath.Glob(filepath.Join(tarballs, "*.tgz"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the packages are %v, %v", files, err)
	}
	begun := time.Now()
	run(t, in(project, "npm", append([]string{"install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"}, files...)...))
	if out := run(t, in(project, "npx", "--offline", "hookonce", "version")); !strings.Contains(out, "schema ") {
		t.Errorf("npx hookonce version: %s", out)
	}
	if err := in(project, "npx", "--offline", "hookonce", "nonsense").Run(); err == nil || err.(*exec.ExitError).ExitCode() != 2 {
		t.Errorf("a wrong command ended with %v", err)
	}

	done := make(chan struct{}, 1)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { done <- struct{}{} }))
	defer app.Close()
	// What npx starts.
	serve := in(project, filepath.Join(project, "node_modules", ".bin", "hookonce"), "serve", "--to", app.URL)
	serve.Env = append(os.Environ(), "HOOKONCE_LISTEN=127.0.0.1:0", "HOOKONCE_ADMIN=127.0.0.1:0")
	logs, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer serve.Process.Kill()
	addr := make(chan string, 1)
	go func() {
		defer close(addr)
		for s := bufio.NewScanner(logs); s.Scan(); {
			if m := regexp.MustCompile(`gateway: running".* listen=(\S+)`).FindStringSubmatch(s.Text()); m != nil {
				addr <- m[1]
			}
		}
	}()
	run(t, in(project, "npx", "--offline", "hookonce", "send", "--secret", "file:hookonce.dev-secret", "--to", "http://"+<-addr+"/in/dev"))
	select {
	case <-done:
		t.Logf("from the install to a delivered event: %v", time.Since(begun).Round(100*time.Millisecond))
	case <-time.After(time.Minute):
		t.Error("nothing was delivered")
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range addr { // until it has closed its log
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("it did not end in order: %v", err)
	}
}

// Where npm left the program out, the launcher says so.
func TestNPMLauncherWithoutProgram(t *testing.T) {
	out, err := exec.Command("node", "../../../packaging/npm/hookonce.js", "version").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not installed") || strings.Contains(string(out), "at ") {
		t.Errorf("%v: %s", err, out)
	}
}

func in(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = dir
	return c
}

func run(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	return string(out)
}
