package throwaway

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// FreePorts returns the first of n ports in a row on the loopback address that nobody listens on, as [FreePort] does.
func FreePorts(n int) (first int, err error) {
	for range 100 {
		if first, err = FreePort(); err != nil {
			return 0, err
		}
		if allFree(first, n) {
			return first, nil
		}
	}
	return 0, errors.New("throwaway: no free ports in a row")
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// KeepCluster ends all processes of a cluster, whose numbers are in files in dir that match the patterns, and removes dir: when
// it is closed, or this process ends, however it ends.
func KeepCluster(dir string, pidFiles ...string) (io.Closer, error) {
	args := []string{"-c", `cat >/dev/null; cd "$1" || exit; shift
		for file in $@; do kill -9 "$(head -n 1 "$file")" 2>/dev/null; done
		sleep 0.2; rm -rf "$PWD"`, "sh", dir}
	cmd := exec.Command("/bin/sh", append(args, pidFiles...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // whatever ends the group of the test leaves it
	return Attend(cmd)
}

// Deploy returns the folder of an example in deploy, seen from the folder of a test.
func Deploy(name string) (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "deploy", name)
		if _, err := os.Stat(found); err == nil {
			return found, nil
		}
	}
	return "", errors.Join(err, errors.New("throwaway: there is no deploy/"+name+" above this folder"))
}
