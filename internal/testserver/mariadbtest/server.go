package mariadbtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// server is one MariaDB server with its data.
type server struct {
	dir    string // holds data, the log and the socket
	port   int
	keeper io.Closer // ends the server and removes its files
}

// serverUser runs MariaDB where the test runs as root.
const serverUser throwaway.User = "nobody"

// fast are the settings of a server that need not survive anything.
var fast = []string{
	"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync",
	"--innodb-file-per-table=0", "--innodb-log-file-size=8M",
}

// start makes a server with empty data and the given settings in a folder that makeDir makes, and returns when it answers.
func start(makeDir func(prefix string) (string, error), settings ...string) (*server, error) {
	s, err := place(makeDir)
	if err != nil {
		return nil, fmt.Errorf("mariadbtest: %w", err)
	}
	if err := s.init(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.launch(settings); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.await(); err != nil {
		return nil, errors.Join(err, s.keeper.Close())
	}
	return s, nil
}

// place returns a server without data, with a folder and a port of its own.
func place(makeDir func(prefix string) (string, error)) (*server, error) {
	dir, err := makeDir("hookonce-mariadb-")
	if err != nil {
		return nil, err
	}
	port, err := throwaway.FreePort()
	return &server{dir: dir, port: port}, errors.Join(err, serverUser.Own(dir))
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// init makes the data folder.
func (s *server) init() error {
	path, err := program("mariadb-install-db")
	if err != nil {
		return err
	}
	// A server removes what others have in a common temporary folder when it begins.
	cmd := exec.Command(path, "--no-defaults", "--datadir="+s.data(), "--tmpdir="+s.dir, "--auth-root-authentication-method=normal",
		"--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=8M")
	if err := serverUser.Run(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadbtest: %s: %w\n%s", path, err, out)
	}
	return nil
}

// program returns the path of one of MariaDB's programs.
func program(name string) (string, error) {
	return throwaway.Program("MariaDB", "/usr/sbin/"+name, "/usr/bin/"+name, name)
}

// launch starts the server beside a shell that reads its standard input to the end, which comes when the
// keeper is closed, or when this process ends, however it ends. Then the shell kills the server.
func (s *server) launch(settings []string) error {
	path, err := program("mariadbd")
	if err != nil {
		return err
	}
	const script = `dir=$1; shift; "$@" >"$dir/log" 2>&1 & server=$!
		cat >/dev/null; kill -9 $server; wait $server 2>/dev/null; rm -rf "$dir"`
	args := []string{
		"-c", script, "sh", s.dir, path, "--no-defaults", "--datadir=" + s.data(),
		"--tmpdir=" + s.dir, "--socket=" + filepath.Join(s.dir, "socket"), "--pid-file=" + filepath.Join(s.dir, "pid"),
		"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port), "--skip-name-resolve", "--max-connections=500",
		"--innodb-buffer-pool-size=64M", "--character-set-server=utf8mb4",
	}
	cmd := exec.Command("/bin/sh", append(args, settings...)...)
	if err := serverUser.Run(cmd); err != nil {
		return err
	}
	s.keeper, err = throwaway.Attend(cmd)
	return err
}

// await returns when the server answers.
func (s *server) await() (err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = s.exec("DO 0"); err == nil {
			return nil
		}
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("%w\n%s", err, text)
}
