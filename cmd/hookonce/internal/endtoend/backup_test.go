package endtoend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// commands returns the commands of a page below the mark "run: name".
func commands(t *testing.T, page, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "<!-- run: "+name+" -->\n```")
	_, block, _ := strings.Cut(after, "\n")
	block, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		t.Fatalf("docs/%s has no block %q", page, name)
	}
	return block
}

// keeper is an application that keeps which deliveries it got under which key.
type keeper struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string][]string // by the event's own identifier
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{keys: map[string][]string{}}
	k.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		id := r.Header.Get("Webhook-Id")
		k.keys[id] = append(k.keys[id], r.Header.Get("Idempotency-Key"))
	}))
	t.Cleanup(k.Close)
	return k
}

func (k *keeper) got(id string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.keys[id]...)
}

// restored is a gateway whose store goes back to an earlier moment.
type restored struct {
	*testing.T
	dir  string
	env  []string
	args []string
	p    *process
}

func (r *restored) serve() {
	r.Helper()
	p, err := launch(r.dir, r.env, r.args...)
	if err != nil {
		r.Fatal(err)
	}
	r.p = p
	p.endWith(r.T)
}

// hookonce runs a command and returns what it wrote.
func (r *restored) hookonce(args ...string) (string, int) {
	r.Helper()
	status, out := command(append(r.env, "HOOKONCE_ADMIN_URL=http://"+r.p.admin), args...)
	return out, status
}

// send sends an event and returns what the gateway said of it.
func (r *restored) send(id string) string {
	r.Helper()
	out, status := r.hookonce("send", "http://"+r.p.addr+"/in/billing", "--secret", "env:SECRET", "--id", id)
	if status != 0 {
		r.Fatalf("send %s: %s", id, out)
	}
	for _, s := range []string{"accepted", "duplicate"} {
		if strings.Contains(out, `"status":"`+s+`"`) {
			return s
		}
	}
	r.Fatalf("send %s: %s", id, out)
	return ""
}

// shell runs commands of a page.
func (r *restored) shell(commands string) {
	r.Helper()
	c := exec.Command("sh", "-ec", commands)
	c.Dir, c.Env = r.dir, r.env
	if out, err := c.CombinedOutput(); err != nil {
		r.Fatalf("%s%v\n%s", commands, err, out)
	}
}

// eventually waits for what a gateway does in the background.
func (r *restored) eventually(what string, ok func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(lookByProgram) {
		if time.Now().After(deadline) {
			r.Fatalf("%s: not in time\n%s", what, r.p.log)
		}
	}
}

func (r *restored) state(id string) string {
	out, status := r.hookonce("events", "show", "billing", id, "--json")
	var e api.Detail
	if status != 0 || json.Unmarshal([]byte(out), &e) != nil {
		return out
	}
	return e.State
}

// The commands of docs/backup.md, while a gateway takes events, and what the page says of the state that comes back.
func TestBackup(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) string{
		"sqlite": func(*testing.T) string { return "sqlite:hookonce.db" }, "postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, dsn := newKeeper(t), store(t)
			r := &restored{T: t, dir: t.TempDir(), env: append(os.Environ(), "SECRET=whsec_c2VjcmV0", "DATABASE_URL="+dsn),
				args: []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", dsn, "--source", "billing", "--provider", "standard", "--secret", "env:SECRET", "--to", app.URL}}
			r.serve()
			r.send("delivered")
			r.eventually("the first delivery", func() bool { return r.state("delivered") == "done" })
			if out, status := r.hookonce("destinations", "pause", "billing", "--reason", "test"); status != 0 {
				t.Fatal(out)
			}
			r.send("waiting")

			var last int // event that was acknowledged before the backup began
			began, ended, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for i := 0; ; i++ {
					if out, status := r.hookonce("send", "http://"+r.p.addr+"/in/billing", "--secret", "env:SECRET", "--id", fmt.Sprint("load", i)); status != 0 {
						t.Error(out)
						return
					}
					if i == 20 {
						last = i
						close(began)
					}
					select {
					case <-ended:
						return
					default:
					}
				}
			}()
			<-began
			r.shell(commands(t, "backup.md", name+" backup"))
			close(ended)
			<-stopped
			r.send("late")
			if out, status := r.hookonce("destinations", "resume", "billing", "--reason", "test"); status != 0 {
				t.Fatal(out)
			}
			r.eventually("the second delivery", func() bool { return len(app.got("waiting")) == 1 && r.state("late") == "done" })
			if err := r.p.end(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}

			r.shell(commands(t, "backup.md", name+" restore"))
			r.serve()
			for id, want := range map[string]string{"delivered": "done", "waiting": "pending", "late": "there is no such event, or not any more\n", fmt.Sprint("load", last): "pending"} {
				if got := r.state(id); got != want {
					t.Errorf("%s is %s, want %s", id, got, want)
				}
			}
			if out, status := r.hookonce("destinations", "resume", "billing", "--reason", "restored"); status != 0 || strings.Contains(out, "already") {
				t.Errorf("the pause: %s", out)
			}
			r.eventually("the delivery of what was open", func() bool { return len(app.got("waiting")) == 2 })
			if keys := app.got("waiting"); keys[0] == "" || keys[0] != keys[1] {
				t.Errorf("delivered again under %q", keys)
			}
			for id, want := range map[string]string{"delivered": "duplicate", "late": "accepted"} {
				if got := r.send(id); got != want {
					t.Errorf("a copy of %s is %s, want %s", id, got, want)
				}
			}
			if err := r.p.end(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		})
	}
}
