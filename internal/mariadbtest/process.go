package mariadbtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// program returns the path of one of MariaDB's programs.
func program(name string) (string, error) {
	for _, path := range []string{"/usr/sbin/" + name, "/usr/bin/" + name} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("mariadbtest: %s is missing, and this test needs MariaDB: run `scripts/install-servers`, "+
			"or use -short to leave such tests out (%w)", name, err)
	}
	return path, nil
}

// asServer makes cmd run as the user that a server runs as, in a process group of its own so that a Ctrl-C
// in the terminal reaches the test alone. MariaDB refuses to run as root; a root test runs it as nobody.
func asServer(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = "/"
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := serverUser()
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return err
}

func serverUser() (uid, gid uint32, err error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return 0, 0, fmt.Errorf("mariadbtest: MariaDB does not run as root, and there is no user nobody: %w", err)
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	group, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group), errors.Join(err, err2)
}

// chown gives a path to the server's user.
func chown(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := serverUser()
	if err != nil {
		return err
	}
	return os.Chown(path, int(uid), int(gid))
}

// attend starts a command that ends when its standard input does. Close ends it and waits for it.
func attend(cmd *exec.Cmd) (io.Closer, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &attendant{in, cmd}, cmd.Start()
}

type attendant struct {
	io.Closer
	cmd *exec.Cmd
}

// Close implements [io.Closer].
func (a *attendant) Close() error {
	return errors.Join(a.Closer.Close(), a.cmd.Wait())
}
