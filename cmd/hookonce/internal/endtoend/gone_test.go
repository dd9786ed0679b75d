package endtoend

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// Of three gateways on one database one is killed: whichever of the others is asked, it is told as gone, and one that
// stops in order is not.
func TestKilledGatewayIsToldAsGone(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", pgtest.DSN(t),
		"--source", "billing", "--provider", "standard", "--secret", "whsec_c2VjcmV0", "--to", "http://127.0.0.1:1/"}
	var all []*process
	for range 3 {
		p, err := launch(t.TempDir(), os.Environ(), args...)
		if err != nil {
			t.Fatal(err)
		}
		p.endWith(t)
		all = append(all, p)
	}
	list := func(p *process, flags ...string) string {
		_, out := command(os.Environ(), append([]string{"destinations", "list", "--admin", p.admin}, flags...)...)
		return out
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !ok(); time.Sleep(look) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not in time\n%s", what, list(all[0], "--all"))
			}
		}
	}
	await("all three", func() bool { return strings.Count(list(all[0], "--all"), " running ") == 3 })
	if text := list(all[0]); strings.Contains(text, "gone") || !strings.Contains(text, "billing  delivering") {
		t.Errorf("while all run:\n%s", text)
	}
	if err := all[1].end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := all[2].kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range all[:1] {
		await("the one that was killed", func() bool { return strings.Count(list(p), " is gone: it was last heard of at ") == 1 })
		if text := list(p, "--all"); strings.Count(text, " running ") != 1 || strings.Count(text, " gone ") != 1 {
			t.Errorf("with --all:\n%s", text)
		}
	}
}
