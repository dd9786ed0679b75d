// Package dynalite starts the stand-in of that name for tests, a server in Node that npm has.
package dynalite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// shared is the server of this process, with what ends it.
var shared = sync.OnceValues(start)

var running io.Closer

// URL returns the address of the server that the tests of this process share. Without its packages the test fails; it is left
// out under -short.
func URL(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("dynalite is not started under -short")
	}
	url, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Stop ends the server, if it was started.
func Stop() error {
	if running == nil {
		return nil
	}
	return running.Close()
}

func start() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Dir(here)
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return "", fmt.Errorf("dynalite is missing: run `make adapters`, or `npm ci --ignore-scripts` in %s; or use -short to leave such tests out", dir)
	}
	node, err := throwaway.Program("dynalite", "node")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(node, filepath.Join(dir, "serve.js"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if running, err = throwaway.Attend(cmd); err != nil {
		return "", err
	}
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", errors.Join(fmt.Errorf("dynalite did not start: %w", err), running.Close())
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port), nil
}
