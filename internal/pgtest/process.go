package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// asServer makes cmd run as the user that a server runs as, in a process group of its own so that a
// Ctrl-C in the terminal reaches the test alone. PostgreSQL and PgBouncer refuse to run as root; a
// root test runs them as the user postgres.
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
	u, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, fmt.Errorf("pgtest: PostgreSQL does not run as root, and there is no user postgres: run `scripts/install-servers` (%w)", err)
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

// killFamily kills a server's process and those that it started, all at once as far as others can tell: a
// server's child goes on answering for a moment after its parent is gone.
func killFamily(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // so that it starts no more
		return err
	}
	children, err := childrenOf(pid)
	for _, child := range children {
		if e := syscall.Kill(child, syscall.SIGKILL); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
}

// childrenOf returns the processes whose parent is pid, on systems that have /proc; none on others.
func childrenOf(pid int) (children []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		// PID (NAME) STATE PARENT ..., where the name may contain anything.
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			children = append(children, child)
		}
	}
	return children, err
}

// attend runs a shell script that reads its standard input to the end, which comes when the returned
// Closer is closed, or when this process ends, however it ends. Close waits for the script.
func attend(script string, args ...string) (io.Closer, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	if err := asServer(cmd); err != nil {
		return nil, err
	}
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

func (a *attendant) Close() error {
	return errors.Join(a.Closer.Close(), a.cmd.Wait())
}

// keep starts the process that stops the server and removes its files at the end.
func (c *Cluster) keep() (io.Closer, error) {
	ctl, err := program("pg_ctl")
	if err != nil {
		return nil, err
	}
	return attend(`cat >/dev/null; "$1" stop -w -s -m immediate -D "$2/data" >/dev/null 2>&1; rm -rf "$2"`, ctl, c.dir)
}
