// Package patronitest runs three PostgreSQL servers under Patroni for tests: with the configuration and the script of
// deploy/patroni, on free ports of the loopback interface, each behind links that can be cut.
package patronitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// patience bounds everything that waits for the cluster.
const patience = 90 * time.Second

// serverUser runs the servers where the test runs as root.
const serverUser throwaway.User = "postgres"

// Nodes is how many there are.
const Nodes = 3

// Cluster is etcd and three nodes. Its methods are for one goroutine at a time.
type Cluster struct {
	t      testing.TB
	dir    string // of its files
	deploy string // of the example
	first  int    // port
	keeper io.Closer
	nodes  [Nodes]*Node
}

// Node is Patroni with its PostgreSQL server.
type Node struct {
	Name     string
	c        *Cluster
	n        int // from 1
	process  *process
	etcd     *cutproxy.Link // to etcd
	postgres *cutproxy.Link // from the other nodes to its server
	rest     *cutproxy.Link // from the other nodes to its Patroni
}

// process is a program of the cluster.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

// Start starts a cluster that belongs to the test alone and returns when it has a leader and a synchronous standby. ttl is
// how long a leader that is gone is waited for; the example's if it is 0. Missing programs fail the test.
func Start(t testing.TB, ttl time.Duration) *Cluster {
	t.Helper()
	if _, err := throwaway.Program("Patroni", "/usr/bin/patroni", "patroni"); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t}
	if err := c.place(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	config := c.config(ttl)
	c.run("etcd", nil, "etcd", c.dir)
	for i := range c.nodes {
		n := &Node{Name: fmt.Sprintf("node%d", i+1), c: c, n: i + 1}
		n.etcd = cutproxy.NewLink(t, c.at(0))
		n.postgres = cutproxy.NewLink(t, c.at(n.n))
		n.rest = cutproxy.NewLink(t, c.at(10+n.n))
		c.nodes[i] = n
		n.start(config)
	}
	c.Await("a leader with a synchronous standby", func() bool { return c.settled() })
	return c
}

// place finds a folder and ports, and has everything ended with the test.
func (c *Cluster) place() (err error) {
	if c.dir, err = throwaway.DiskDir("hookonce-patroni-"); err != nil {
		return err
	}
	if err = serverUser.Own(c.dir); err != nil {
		return err
	}
	if c.deploy, err = throwaway.Deploy("patroni"); err != nil {
		return err
	}
	if c.first, err = throwaway.FreePorts(14); err != nil {
		return err
	}
	c.keeper, err = throwaway.KeepCluster(c.dir, "*.pid", "node*/data/postmaster.pid")
	return err
}

func (c *Cluster) at(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.first+port))
}

// config returns the file of the example, with another ttl if that is asked for.
func (c *Cluster) config(ttl time.Duration) string {
	text, err := os.ReadFile(filepath.Join(c.deploy, "patroni.yml"))
	if err != nil {
		c.t.Fatal(err)
	}
	if ttl > 0 {
		s := int(ttl.Seconds())
		text = []byte(strings.NewReplacer("ttl: 20", fmt.Sprint("ttl: ", s), "loop_wait: 5", fmt.Sprint("loop_wait: ", max(1, s/5)),
			"retry_timeout: 5", fmt.Sprint("retry_timeout: ", max(1, s*2/5))).Replace(string(text)))
	}
	file := filepath.Join(c.dir, "patroni.yml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// run starts a program of the script.
func (c *Cluster) run(log string, env []string, args ...string) *process {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.deploy, "cluster"), args...)
	cmd.Env = append(append(os.Environ(), fmt.Sprint("FIRST_PORT=", c.first)), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.OpenFile(filepath.Join(c.dir, log+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	p := &process{cmd, make(chan struct{})}
	go func() { defer close(p.ended); _ = p.Wait() }()
	return p
}

func (n *Node) start(config string) {
	n.process = n.c.run(n.Name, []string{"ETCD=" + n.etcd.Addr(), "PATRONI_ETCD3_USE_PROXIES=true", // or it would ask etcd for another way
		"CONNECT=" + n.postgres.Addr(), "REST=" + n.rest.Addr(), "CONFIG=" + config},
		"node", strconv.Itoa(n.n), n.c.dir)
}

func (c *Cluster) close() {
	if c.t.Failed() {
		for _, n := range c.nodes {
			if text, err := os.ReadFile(filepath.Join(c.dir, n.Name+".log")); err == nil {
				c.t.Logf("the end of %s's log:\n%s", n.Name, text[max(0, len(text)-4000):])
			}
		}
	}
	_ = c.keeper.Close()
}

// DSN returns the connection string that leads to whoever leads.
func (c *Cluster) DSN() string {
	return fmt.Sprintf("postgres://postgres@%s,%s,%s/postgres?target_session_attrs=read-write&sslmode=disable", c.at(1), c.at(2), c.at(3))
}

// DSN returns the connection string of the node's server.
func (n *Node) DSN() string {
	return "postgres://postgres@" + n.c.at(n.n) + "/postgres?sslmode=disable&connect_timeout=2"
}

// Node returns the node with the number, from 1 on.
func (c *Cluster) Node(n int) *Node { return c.nodes[n-1] }

// Await waits until done reports true, and fails the test when that takes too long.
func (c *Cluster) Await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if done() {
			return
		}
	}
	c.t.Fatalf("patronitest: waited %v for %s", patience, what)
}

// member is what Patroni says of a node.
type member struct {
	Name, Role, State string
	Timeline          int
}

// Members asks any node that answers who is in the cluster, as `patronictl list` does.
func (c *Cluster) members() (all []member) {
	for _, n := range c.nodes {
		var answer struct{ Members []member }
		if n.ask("/cluster", &answer) == nil && len(answer.Members) > len(all) {
			all = answer.Members
		}
	}
	return all
}

// ask asks the node's Patroni.
func (n *Node) ask(path string, answer any) error {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Get("http://" + n.c.at(10+n.n) + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(answer)
}

// settled reports whether all nodes run, on one timeline, and one of them is the synchronous standby.
func (c *Cluster) settled() bool {
	roles, timelines := map[string]int{}, map[int]bool{}
	for _, m := range c.members() {
		if m.State == "running" || m.State == "streaming" {
			roles[m.Role]++
			timelines[m.Timeline] = true
		}
	}
	return roles["leader"] == 1 && roles["sync_standby"] == 1 && roles["replica"] == Nodes-2 && len(timelines) == 1
}

// Settle waits until the cluster is whole again.
func (c *Cluster) Settle() { c.t.Helper(); c.Await("the cluster to be whole", c.settled) }

// Leader returns the node that etcd says leads, or nil.
func (c *Cluster) Leader() *Node {
	for _, m := range c.members() {
		if m.Role == "leader" {
			for _, n := range c.nodes {
				if n.Name == m.Name {
					return n
				}
			}
		}
	}
	return nil
}

// Promotions returns when each timeline began, as Patroni's history has it.
func (c *Cluster) Promotions() map[int]time.Time {
	all := map[int]time.Time{}
	for _, n := range c.nodes {
		var lines [][]any // timeline that ended, position, reason, time, new leader
		if n.ask("/history", &lines) != nil {
			continue
		}
		for _, l := range lines {
			if len(l) < 4 {
				continue
			}
			timeline, _ := l[0].(float64)
			text, _ := l[3].(string)
			if at, err := time.Parse("2006-01-02T15:04:05.999999-07:00", text); err == nil {
				all[int(timeline)+1] = at
			}
		}
	}
	return all
}

// Switchover hands the lead to the synchronous standby, as an operator does.
func (c *Cluster) Switchover() {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.deploy, "cluster"), "switchover")
	cmd.Env = append(os.Environ(), fmt.Sprint("FIRST_PORT=", c.first))
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("patronitest: switchover: %v\n%s", err, out)
	}
}

// Kill kills Patroni and its server as kill -9 does.
func (n *Node) Kill() {
	n.c.t.Helper()
	_ = n.process.Process.Kill()
	<-n.process.ended
	n.KillServer()
}

// KillServer kills the node's server alone.
func (n *Node) KillServer() {
	n.c.t.Helper()
	if err := n.signalServer(syscall.SIGKILL); err != nil {
		n.c.t.Fatal(err)
	}
}

// Start starts Patroni again after Kill.
func (n *Node) Start() { n.start(filepath.Join(n.c.dir, "patroni.yml")) }

// StopPatroni has Patroni stand still, while its server goes on. The returned function has another take its place, as a
// watchdog or a supervisor does.
//
// It does not have it go on: where Patroni older than 3.0.3 is stopped between its look at etcd and the renewal of
// its lock, it takes the lock from whoever leads by then, whose commits are lost with that
// (https://github.com/patroni/patroni/pull/2689).
func (n *Node) StopPatroni() (restart func()) {
	n.c.t.Helper()
	if err := n.process.Process.Signal(syscall.SIGSTOP); err != nil {
		n.c.t.Fatal(err)
	}
	return func() {
		_ = n.process.Process.Kill()
		<-n.process.ended
		n.Start()
	}
}

// Freeze has Patroni and its server stand still. The returned function has the server go on under another Patroni.
func (n *Node) Freeze() (resume func()) {
	n.c.t.Helper()
	restart := n.StopPatroni()
	if err := n.signalServer(syscall.SIGSTOP); err != nil {
		n.c.t.Fatal(err)
	}
	return func() {
		_ = n.signalServer(syscall.SIGCONT)
		restart()
	}
}

// Partition cuts the node off from etcd and from the other nodes. Clients still reach it.
func (n *Node) Partition() (mend func()) {
	links := []*cutproxy.Link{n.etcd, n.postgres, n.rest}
	for _, l := range links {
		l.Cut()
	}
	return func() {
		for _, l := range links {
			l.Mend()
		}
	}
}

// signalServer signals the server's first process and all that it started.
func (n *Node) signalServer(s syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(n.c.dir, n.Name, "data", "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("patronitest: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("patronitest: %w", err)
	}
	return throwaway.SignalFamily(pid, 0, s)
}

var errStandby = errors.New("patronitest: a standby")

// Writable reports whether a row can be committed at the node, with all that its configuration waits for.
func (n *Node) Writable(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, n.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var standby bool
	if err := conn.QueryRow(ctx, `SELECT pg_is_in_recovery()`).Scan(&standby); err != nil || standby {
		return errors.Join(errStandby, err)
	}
	_, err = conn.Exec(ctx, `INSERT INTO patronitest DEFAULT VALUES`)
	return err
}
