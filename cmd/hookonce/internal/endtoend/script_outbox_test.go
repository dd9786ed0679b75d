package endtoend

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/sqlstore"
)

// enqueueInScript stores effects as an application does: enqueue STORE NAME KEY...
func enqueueInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: enqueue store name key...")
	}
	at, err := config.ParseStore(args[0])
	ts.Check(err)
	if at.Driver == config.SQLite {
		at.DSN = ts.MkAbs(at.DSN)
	}
	for _, key := range args[2:] {
		ts.Check(enqueueIn(at, args[1], key))
	}
}

func enqueueIn(at config.Store, name, key string) error {
	if at.Driver == config.SQLite {
		db, err := sql.Open("sqlite", at.DSN)
		if err != nil {
			return err
		}
		defer db.Close()
		return enqueue(sqlstore.New(db, sqlstore.SQLite), name, key)
	}
	pool, err := pgxpool.New(context.Background(), at.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	return enqueue(pgstore.New(pool), name, key)
}

// enqueue stores an effect in the transaction of an event with that key.
func enqueue[Tx any](store hookonce.TxStore[Tx], name, key string) error {
	ctx := context.Background()
	_, err := store.Within(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}}, func(tx Tx, c hookonce.Claim) error {
		return hookonce.Enqueue(hookonce.ContextWith(ctx, store, c, nil), tx, hookonce.Effect{Name: name, Payload: []byte(key)})
	})
	return err
}

// receiveInScript starts a server at $RECEIVER that answers a path such as /503 with that status, and any
// other path with 200.
func receiveInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: receive")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	}))
	ts.Defer(server.Close)
	ts.Setenv("RECEIVER", server.URL)
}

// relayInScript runs "hookonce relay args..." until no effect is open any more, stops it with SIGTERM, and
// insists on exit status 0: relay STORE args... Its log is in relay.log.
func relayInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: relay store args...")
	}
	p, err := launchRelay(ts.MkAbs("."), append(scriptEnv(ts), "MAIL_SECRET="+ts.Getenv("MAIL_SECRET"), "MAIL_URL="+ts.Getenv("MAIL_URL")),
		append([]string{"--store", args[0]}, args[1:]...)...)
	ts.Check(err)
	defer p.cmd.Process.Kill()
	for _, state := range []string{"pending", "failed", "processing"} {
		eventually(ts, false, []string{`^\[\]$`, "hookonce", "relay", "list", "--json", "--store", args[0], "--state", state})
	}
	ts.Check(p.end(syscall.SIGTERM))
	ts.Check(os.WriteFile(ts.MkAbs("relay.log"), []byte(p.log.String()), 0o600))
}

// showInScript runs "hookonce dashboard", reads a page of it as JSON into the file shown, stops it with SIGTERM, and insists on
// exit status 0: show PATH args...
func showInScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: show path args...")
	}
	cmd := exec.Command(serving, append([]string{"dashboard", "--listen", "127.0.0.1:0"}, args[1:]...)...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), scriptEnv(ts)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n') // which names the address
	ts.Check(err)
	address, _, _ := strings.Cut(line, "/ shows ")
	r, err := http.NewRequest("GET", address+args[0], nil)
	ts.Check(err)
	r.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("shown"), append(fmt.Appendln(nil, answer.StatusCode), text...), 0o600))
	ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	ts.Check(cmd.Wait())
}

// launchRelay starts "hookonce relay" with the arguments.
func launchRelay(dir string, env []string, args ...string) (*process, error) {
	return launchSilent(dir, env, append([]string{"relay"}, args...)...)
}

// launchSilent starts hookonce with the arguments, and does not wait until it says that it serves.
func launchSilent(dir string, env []string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(serving, args...), out: new(transcript), log: new(transcript), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, p.out, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}
