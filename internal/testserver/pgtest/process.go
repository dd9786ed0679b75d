package pgtest

import (
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// serverUser runs PostgreSQL and PgBouncer where the test runs as root.
const serverUser throwaway.User = "postgres"

// attend runs a shell script that reads its standard input to the end, which comes when the returned
// Closer is closed, or when this process ends, however it ends. Close waits for the script.
func attend(script string, args ...string) (io.Closer, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	if err := serverUser.Run(cmd); err != nil {
		return nil, err
	}
	return throwaway.Attend(cmd)
}

// keep starts the process that stops the server and removes its files at the end.
func (c *Cluster) keep() (io.Closer, error) {
	ctl, err := program(c.programs, "pg_ctl")
	if err != nil {
		return nil, err
	}
	k, err := attend(`cat >/dev/null; "$1" stop -w -s -m immediate -D "$2/data" >/dev/null 2>&1; rm -rf "$2" 2>/dev/null; ! test -e "$2/data"`, ctl, c.dir)
	return keeper{k, c.dir}, err
}

// keeper is that process. The server's user may not be allowed to remove the folder itself, which this one made.
type keeper struct {
	io.Closer
	dir string
}

// Close implements [io.Closer].
func (k keeper) Close() error { return errors.Join(k.Closer.Close(), os.RemoveAll(k.dir)) }
