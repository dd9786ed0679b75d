package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// A program that does not run where there is nothing else is refused, and no image is made of it.
func TestWhichProgramsFit(t *testing.T) {
	built := func(settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3-0.20261123020000-abcdefabcdef+dirty"}}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		return info
	}
	for _, tt := range []struct {
		info *debug.BuildInfo
		want string // in the error; none: it fits
	}{
		{built("GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"), ""},
		{built("GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1"), "CGO_ENABLED=0"},
		{built("GOOS=linux", "GOARCH=amd64"), "CGO_ENABLED=0"},
		{built("GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"), "GOOS=linux"},
	} {
		p, err := describe(tt.info)
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%v: %v", tt.info.Settings, err)
		case err == nil && (p.arch != "arm64" || p.reference() != "localhost/hookonce:v1.2.3-0.20261123020000-abcdefabcdef-dirty"):
			t.Errorf("it is for %s, and is called %s", p.arch, p.reference())
		}
	}
	out := filepath.Join(t.TempDir(), "x.tar")
	if _, err := write(out, "image_test.go", "image_test.go"); err == nil {
		t.Error("an image was made of something else than a program")
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}

// Nobody who builds the same program gets another image, wherever and whenever.
func TestSameProgramSameImage(t *testing.T) {
	program, license := theProgram(t), "../../../LICENSE"
	var first []byte
	for range 2 {
		out := filepath.Join(t.TempDir(), "hookonce.tar")
		if _, err := write(out, program, license); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		noTimes(t, bytes.NewReader(b))
		if first == nil {
			first = b
		} else if !bytes.Equal(first, b) {
			t.Error("the second image differs from the first")
		}
	}
}

// noTimes insists that no file of an archive, or of an archive in it, says when it was written.
func noTimes(t *testing.T, files io.Reader) {
	t.Helper()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			return
		}
		if h.ModTime.Unix() != 0 {
			t.Errorf("%s was written at %v", h.Name, h.ModTime)
		}
		if z, err := gzip.NewReader(r); err == nil {
			noTimes(t, z)
		}
	}
}

func TestRootsAreThere(t *testing.T) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trusted()) || bytes.Count(trusted(), []byte("BEGIN CERTIFICATE")) < 100 {
		t.Error("these are not the roots that the world trusts")
	}
}

// The image, run as its configuration says, with nothing but what is in it and one folder to write to: it serves, its
// health check tells whether it does, an event goes through it, and it ends in order.
func TestImageRuns(t *testing.T) {
	c := newContainer(t)
	got := make(chan string, 16)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Idempotency-Key") }))
	defer app.Close()

	gateway := c.start(c.config.Entrypoint, append(c.config.Cmd, "--to", app.URL))
	listen, admin := gateway.running()
	c.env = append(c.env, "HOOKONCE_ADMIN_URL=http://"+admin)
	health := c.config.Healthcheck.Test
	if health[0] != "CMD" {
		t.Fatalf("the health check is %q", health)
	}
	if err := c.start(health[1:2], health[2:]).wait(); err != nil {
		t.Errorf("a gateway that serves is called unhealthy: %v", err)
	}

	secret := filepath.Join(c.data, "hookonce.dev-secret")
	if out, err := exec.Command(c.program, "send", "--secret", "file:"+secret, "--id", "evt-1", "--copies", "2", "--to", "http://"+listen+"/in/dev").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	select {
	case key := <-got:
		if !strings.Contains(key, "evt-1") {
			t.Errorf("the application was sent %q", key)
		}
	case <-time.After(patience):
		t.Error("nothing was delivered")
	}

	gateway.terminate()
	if err := gateway.wait(); err != nil {
		t.Errorf("it did not end in order: %v", err)
	}
	if len(got) > 0 {
		t.Error("a copy was delivered")
	}
	if err := c.start(health[1:2], health[2:]).wait(); err == nil {
		t.Error("a gateway that is gone is called healthy")
	}
}

// theProgram is built once for all tests, as make image builds it.
func theProgram(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built = sync.OnceValues(func() (string, error) {
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(scratch, "hookonce"), "./cmd/hookonce")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(scratch, "hookonce"), nil
})

var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "image"); err != nil {
		log.Fatal(err)
	}
	status := m.Run()
	os.RemoveAll(scratch)
	os.Exit(status)
}

// container is the image, unpacked.
type container struct {
	t       *testing.T
	config  v1.Config
	root    string // the files of the image, which nobody may change
	data    string // the volume
	program string // outside
	env     []string
}

func newContainer(t *testing.T) *container {
	t.Helper()
	c := &container{t: t, root: t.TempDir(), data: t.TempDir(), program: theProgram(t)}
	out := filepath.Join(t.TempDir(), "hookonce.tar")
	name, err := write(out, c.program, "../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c.config = file.Config
	c.env = append(c.env, "HOOKONCE_LISTEN=127.0.0.1:0", "HOOKONCE_ADMIN=127.0.0.1:0") // so that tests do not meet
	if !strings.HasPrefix(name, repository+":") || c.config.User != "65532:65532" {
		t.Errorf("%s runs as %s", name, c.config.User)
	}
	unpack(t, mutate.Extract(img), c.root)
	for _, folder := range []string{"proc", "dev"} { // runtimes make them
		if err := os.Mkdir(filepath.Join(c.root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func unpack(t *testing.T, files io.ReadCloser, root string) {
	t.Helper()
	defer files.Close()
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, text, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sandboxed is a program that runs in the container.
type sandboxed struct {
	t     *testing.T
	cmd   *exec.Cmd
	pid   int // as seen from outside
	lines chan string
	log   bytes.Buffer
	ended chan error
}

// start runs a command in the container: the first process there, without a capability, in namespaces of its own but for
// the network, through which the test talks to it.
func (c *container) start(entrypoint, args []string) *sandboxed {
	c.t.Helper()
	uid, gid, _ := strings.Cut(c.config.User, ":")
	sandbox := []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--as-pid-1", "--die-with-parent",
		"--uid", uid, "--gid", gid, "--cap-drop", "ALL", "--clearenv", "--info-fd", "3",
		"--ro-bind", c.root, "/", "--bind", c.data, c.config.WorkingDir, "--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", "--chdir", c.config.WorkingDir}
	for _, v := range append(c.config.Env, c.env...) {
		name, value, _ := strings.Cut(v, "=")
		sandbox = append(sandbox, "--setenv", name, value)
	}
	info, told, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	defer info.Close()
	p := &sandboxed{t: c.t, lines: make(chan string, 1<<10), ended: make(chan error, 1)}
	p.cmd = exec.CommandContext(context.WithoutCancel(c.t.Context()), "bwrap", append(append(sandbox, entrypoint...), args...)...)
	p.cmd.ExtraFiles = []*os.File{told}
	logs, err := p.cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		c.t.Fatalf("%v (bubblewrap runs the container)", err)
	}
	told.Close()
	var in struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(info).Decode(&in); err != nil {
		c.t.Errorf("bubblewrap says nothing of the process: %v", err)
	}
	p.pid = in.PID
	go p.read(logs)
	c.t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

func (p *sandboxed) read(logs io.Reader) {
	for s := bufio.NewScanner(logs); s.Scan(); {
		p.log.WriteString(s.Text() + "\n")
		select {
		case p.lines <- s.Text():
		default:
		}
	}
	p.ended <- p.cmd.Wait()
}

var runningLine = regexp.MustCompile(`msg="gateway: running".* listen=(\S+) admin=(\S+)`)

// running waits until a gateway serves, and returns where.
func (p *sandboxed) running() (listen, admin string) {
	p.t.Helper()
	for {
		select {
		case line := <-p.lines:
			if bound := runningLine.FindStringSubmatch(line); bound != nil {
				return bound[1], bound[2]
			}
		case err := <-p.ended:
			p.t.Fatalf("it ended: %v\n%s", err, &p.log)
		case <-time.After(patience):
			p.t.Fatal("it did not start")
		}
	}
}

// terminate does what stopping a container does first.
func (p *sandboxed) terminate() {
	p.t.Helper()
	if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil {
		p.t.Fatal(strconv.Itoa(p.pid), err)
	}
}

func (p *sandboxed) wait() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			return errors.New(err.Error() + "\n" + p.log.String())
		}
		return nil
	case <-time.After(patience):
		p.t.Fatal("it does not end")
		return nil
	}
}
