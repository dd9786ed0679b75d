package endtoend

import (
	"errors"
	"github.com/hookonce/hookonce/internal/testskip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// TestScripts runs the command lines under testdata against the real program. Besides the usual
// commands of testscript there are:
//
//	serve args...     start "hookonce serve args..." and wait until it runs; sets $ADDR and $ADMIN
//	first-event       run the command that serve printed
//	end               send SIGTERM, wait, insist on exit status 0; output in serve.out and serve.log
//	exits n cmd...    run a command and insist on its exit status
//	eventually pattern cmd...  run a command until its output matches
//	sqlite file statements, postgres statements   run the SQL in a file
//	raw files...      cut the last line break off files, which they have in a script
//	receive           start a server at $RECEIVER; its path /503 answers 503, and so on
//	enqueue store name key...  store effects in an outbox
//	show path args... run "hookonce dashboard args...", read a page of it as JSON into the file shown, and end it
//	relay store args...  run "hookonce relay" until the outbox is empty, send SIGTERM, insist on exit status 0
//
// A line "stop" is testscript's own: it ends the script there, as passed. No script has one.
//
// Gateways listen on free ports unless a script says otherwise.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: freePorts, Cmds: scriptCommands()})
}

// TestScriptsOnPostgres runs the ones that need a database, each with an empty one at $DSN.
func TestScriptsOnPostgres(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/postgres",
		Cmds: scriptCommands(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("DSN", pgtest.DSN(env.T().(testing.TB)))
			return freePorts(env)
		},
	})
}

// A script that stops early passes whatever comes after.
func TestScriptsRunToTheirEnd(t *testing.T) {
	for _, pattern := range []string{"testdata/*.txt", "testdata/*/*.txt"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if stops.Match(text) {
				t.Errorf("%s stops before its end; to end a gateway write: end", name)
			}
		}
	}
}

var stops = regexp.MustCompile(`(?m)^stop\b`)

func freePorts(env *testscript.Env) error {
	env.Setenv("HOOKONCE_LISTEN", "127.0.0.1:0")
	env.Setenv("HOOKONCE_ADMIN", "127.0.0.1:0")
	env.Values[served{}] = new(served)
	return nil
}

func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"serve":       serveInScript,
		"end":         endInScript,
		"first-event": firstEvent,
		"exits":       exits,
		"certificate": certificateInScript,
		"raw":         raw,
		"eventually":  eventually,
		"enqueue":     enqueueInScript,
		"receive":     receiveInScript,
		"relay":       relayInScript,
		"show":        showInScript,
		"sqlite":      sqliteInScript,
		"postgres":    postgresInScript,
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// eventually waits for what a gateway does in the background. Line breaks count as blanks.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually pattern command args...")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	var out string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(lookByProgram) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if out = strings.Join(strings.Fields(ts.ReadFile("stdout")), " "); pattern.MatchString(out) {
			return
		}
	}
	ts.Fatalf("waited %v for %s in:\n%s", patience, pattern, out)
}

func raw(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: raw files...")
	}
	for _, name := range args {
		text := strings.TrimSuffix(ts.ReadFile(name), "\n")
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// served is the process that a script started, under the key of that name in its values.
type served struct{ *process }

func serveInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("a gateway that must fail is: ! exec hookonce serve")
	}
	p, err := launch(ts.MkAbs("."), scriptEnv(ts), append([]string{"serve"}, args...)...)
	ts.Check(err)
	ts.Defer(func() {
		p.cmd.Process.Kill() // which fails if a stop came before
		<-p.ended
	})
	ts.Value(served{}).(*served).process = p
	ts.Setenv("ADDR", p.addr)
	ts.Setenv("ADMIN", p.admin)
}

func endInScript(ts *testscript.TestScript, neg bool, args []string) {
	p := ts.Value(served{}).(*served).process
	if p == nil || neg || len(args) > 0 {
		ts.Fatalf("usage: end, after serve")
	}
	ts.Check(p.end(syscall.SIGTERM))
	ts.Check(os.WriteFile(ts.MkAbs("serve.out"), []byte(p.out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("serve.log"), []byte(p.log.String()), 0o600))
}

// firstEvent runs the command that a development gateway printed, in a shell, as a user does.
func firstEvent(ts *testscript.TestScript, neg bool, args []string) {
	p := ts.Value(served{}).(*served).process
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(look) {
		if command := sendLine.FindString(p.out.String()); command != "" {
			ts.Check(ts.Exec("sh", "-c", command))
			return
		}
	}
	ts.Fatalf("no command was printed:\n%s", p.out)
}

var sendLine = regexp.MustCompile(`(?m)^ +\S+ send http.*\n`)

// scriptEnv is the environment of a gateway in a script.
func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "HOOKONCE_LISTEN", "HOOKONCE_ADMIN", "DSN", "SECRET", "ACME_SECRET", "READ", "OPS", "HOOK", "GONE", "MAIL"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}
