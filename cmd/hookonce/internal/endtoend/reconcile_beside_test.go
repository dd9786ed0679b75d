package endtoend

import (
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReconcileBesideSQLite: the file of the store belongs to the gateway that runs, so the command has that one compare, with its own
// token, and prints the same with the same exit status.
func TestReconcileBesideSQLite(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	f := newForgetful(t)
	dir, file := f.configure("sqlite:"+filepath.Join(t.TempDir(), "hookonce.db"), "")
	g := f.launch(dir, file)
	env := append(os.Environ(), "LIST_TOKEN=a-fake-token-that-the-sender-does-not-know")
	ask := func(want int, args ...string) string {
		t.Helper()
		status, out := command(env, append([]string{"reconcile", "--config", file, "--source", "orders", "--since", "3h"}, args...)...)
		if status != want {
			t.Errorf("reconcile %v exited %d, and not %d:\n%s", args, status, want, out)
		}
		return out
	}
	admin := "--admin=http://" + g.admin
	here := f.make(3, time.Now().Add(-2*time.Hour))
	for _, e := range here {
		f.deliver(g, e, http.StatusOK)
	}
	ago := time.Now().Add(-time.Hour)
	lost := append(f.make(9, ago), f.make(2, ago.Add(30*time.Minute))...)
	if out := ask(1); !strings.Contains(out, "belongs to a gateway that runs, which has to compare; the configuration's admin names no port") {
		t.Errorf("without an address it said\n%s", out)
	}
	if out := ask(1, admin, "--admin=http://127.0.0.1:1"); !strings.Contains(out, "name that one alone") {
		t.Errorf("with two addresses it said\n%s", out)
	}
	if out := ask(1, "--admin=http://127.0.0.1:1"); !strings.Contains(out, "the gateway at http://127.0.0.1:1 does not answer") {
		t.Errorf("with a wrong address it said\n%s", out)
	}
	if out := ask(1, admin, "--source=order"); !strings.Contains(out, `this gateway has no source "order"; it has `) {
		t.Errorf("with a wrong source it said\n%s", out)
	}
	if out := ask(1, admin); !strings.Contains(out, "missing      11") || !strings.Contains(out, "on record    3") || !strings.Contains(out, lost[10].ID) || !strings.Contains(out, "the one at http://"+g.admin+" asks the sender") {
		t.Errorf("a report is\n%s", out)
	}
	if out := ask(0, admin, "--ingest", "--until", ago.Add(10*time.Minute).UTC().Format(time.RFC3339)); !strings.Contains(out, "stored       9") {
		t.Errorf("it said\n%s", out)
	}
	f.mu.Lock()
	f.again = func(id string) {
		f.deliver(g, lost[slices.IndexFunc(lost, func(e forgottenEvent) bool { return e.ID == id })], http.StatusOK)
	}
	f.mu.Unlock()
	if out := ask(0, admin, "--redeliver", "--json"); !strings.Contains(out, `"redelivered": 2`) {
		t.Errorf("it said\n%s", out)
	}
	f.await(14)
	if out := ask(0, admin, "--ingest"); !strings.Contains(out, "on record    14") || !strings.Contains(out, "missing      0") {
		t.Errorf("once all is there it said\n%s", out)
	}
	f.once()
	if status, out := command(env, "reconcile", "--config", file, "--source", "orders", "--since", fmt.Sprint(200*24, "h"), admin); status != 1 || !strings.Contains(out, "are remembered for") {
		t.Errorf("for longer than keys are remembered: %d\n%s", status, out)
	}
}
