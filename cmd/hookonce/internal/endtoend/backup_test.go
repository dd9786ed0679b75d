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

// shell runs commands of a page, as somebody does who pastes them.
func (r *restored) shell(commands string) (out string) {
	r.Helper()
	out, err := r.tryShell(commands)
	if err != nil {
		r.Fatalf("%s%v\n%s", commands, err, out)
	}
	return out
}

func (r *restored) tryShell(commands string) (string, error) {
	c := exec.Command("sh", "-c", commands)
	c.Dir, c.Env = r.dir, r.env
	out, err := c.CombinedOutput()
	return string(out), err
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
			out, err := r.tryShell(commands(t, "backup.md", name+" backup"))
			close(ended)
			<-stopped
			if err != nil {
				t.Fatalf("the backup: %v\n%s", err, out)
			}
			r.send("late")
			if out, status := r.hookonce("destinations", "resume", "billing", "--reason", "test"); status != 0 {
				t.Fatal(out)
			}
			r.eventually("the second delivery", func() bool { return len(app.got("waiting")) == 1 && r.state("late") == "done" })
			if err := r.p.end(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}

			r.shell(commands(t, "backup.md", name+" restore"))
			started := time.Now().UTC().Format(time.RFC3339Nano)
			r.serve()
			r.send("since")
			r.env = append(r.env, "STARTED="+started, "HOOKONCE_ADMIN_URL=http://"+r.p.admin)
			list, _, _ := strings.Cut(commands(t, "backup.md", "afterwards"), "\n")
			if out := r.shell(list); strings.Contains(out, "since") || !strings.Contains(out, "load") {
				t.Errorf("%s says that the state is of\n%s", list, out)
			}
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

// What goes wrong while a backup is made or put back leaves the backup and the store that were there.
func TestBackupThatFails(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		r := &restored{T: t, dir: t.TempDir(), env: os.Environ()}
		fails := func(block string) {
			t.Helper()
			if out, err := r.tryShell(commands(t, "backup.md", block)); err == nil {
				t.Errorf("%s is taken for done: %s", block, out)
			}
		}
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		has := func(name, want string) {
			t.Helper()
			if got, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(got) != want {
				t.Errorf("%s has %q, %v, want %q", name, got, err, want)
			}
		}
		write("backup.db", "last night's")
		fails("sqlite backup") // in a folder without a store
		write("hookonce.db", "")
		fails("sqlite backup") // of a file that never was one
		has("backup.db", "last night's")

		write("hookonce.db", "the store")
		write("hookonce.db-wal", "its log")
		r.shell("mv backup.db elsewhere")
		fails("sqlite restore") // without the backup
		has("hookonce.db", "the store")
		r.shell("mv elsewhere backup.db")
		r.shell(commands(t, "backup.md", "sqlite restore"))
		has("hookonce.db", "last night's")
		has("before/hookonce.db", "the store")
		has("before/hookonce.db-wal", "its log")
		if _, err := os.Stat(filepath.Join(r.dir, "hookonce.db-wal")); err == nil {
			t.Error("the old log is left beside the new file")
		}
		fails("sqlite restore") // once more: what was put aside is not overwritten
		has("before/hookonce.db", "the store")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		app, dsn := newKeeper(t), pgtest.DSN(t)
		r := &restored{T: t, dir: t.TempDir(), env: append(os.Environ(), "SECRET=whsec_c2VjcmV0", "DATABASE_URL="+dsn),
			args: []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", dsn, "--source", "billing", "--provider", "standard", "--secret", "env:SECRET", "--to", app.URL}}
		r.serve()
		r.send("accepted")
		if err := r.p.end(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		r.shell(commands(t, "backup.md", "postgres backup"))
		dump := filepath.Join(r.dir, "backup.dump")
		whole, err := os.ReadFile(dump)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.tryShell("DATABASE_URL=postgres://127.0.0.1:1/nobody\n" + commands(t, "backup.md", "postgres backup")); err == nil {
			t.Error("a backup of no server is taken for done")
		}
		if got, err := os.ReadFile(dump); err != nil || len(got) != len(whole) {
			t.Errorf("the last backup has %d bytes, %v, want %d", len(got), err, len(whole))
		}
		if err := os.Truncate(dump, int64(len(whole)-100)); err != nil {
			t.Fatal(err)
		}
		if out, err := r.tryShell(commands(t, "backup.md", "postgres restore")); err == nil {
			t.Fatalf("half a dump is taken for restored: %s", out)
		}
		r.tryShell(commands(t, "backup.md", "postgres restore undone")) // an error where the list could not be read
		r.serve()
		if got := r.send("accepted"); got != "duplicate" {
			t.Errorf("after a restore that failed, a copy is %s", got)
		}
		if err := r.p.end(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
}
