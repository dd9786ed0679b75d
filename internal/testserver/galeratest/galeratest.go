// Package galeratest runs three MariaDB servers in a Galera cluster for tests: with the configuration and the script of
// deploy/galera, on free ports of the loopback interface.
package galeratest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// patience bounds everything that waits for the cluster.
const patience = 2 * time.Minute

// serverUser runs the servers where the test runs as root.
const serverUser throwaway.User = "mysql"

// Nodes is how many there are.
const Nodes = 3

// Cluster is three nodes. Its methods are for one goroutine at a time, DSN excepted.
type Cluster struct {
	t           testing.TB
	dir, deploy string
	first       int // port
	keeper      io.Closer
	databases   atomic.Int64
}

// Start starts a cluster that belongs to the test alone and returns when it has all nodes. Missing programs fail the test.
func Start(t testing.TB) *Cluster {
	t.Helper()
	for _, name := range []string{"/usr/sbin/mariadbd", "/usr/bin/wsrep_sst_rsync", "/usr/bin/rsync"} {
		if _, err := throwaway.Program("Galera", name); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cluster{t: t}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Cluster) start() (err error) {
	if c.dir, err = throwaway.DiskDir("hookonce-galera-"); err != nil {
		return err
	}
	if err = serverUser.Own(c.dir); err != nil {
		return err
	}
	if c.deploy, err = throwaway.Deploy("galera"); err != nil {
		return err
	}
	if c.first, err = throwaway.FreePorts(40); err != nil {
		return err
	}
	if c.keeper, err = throwaway.KeepCluster(c.dir, "*.pid"); err != nil {
		return err
	}
	c.t.Cleanup(c.close)
	if _, err := c.run("start", "start", c.dir); err != nil {
		return err
	}
	c.Whole()
	return nil
}

func (c *Cluster) close() {
	if c.t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
		for _, file := range logs {
			if text, err := os.ReadFile(file); err == nil {
				c.t.Logf("the end of %s:\n%s", filepath.Base(file), text[max(0, len(text)-2000):])
			}
		}
	}
	_ = c.keeper.Close()
}

// run starts the script, which ends with the cluster.
func (c *Cluster) run(log string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(c.deploy, "cluster"), args...)
	cmd.Env = append(os.Environ(), fmt.Sprint("FIRST_PORT=", c.first))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.OpenFile(filepath.Join(c.dir, log+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }()
	return cmd, nil
}

// DSN returns the way to a database on the node with the number, from 1 on, as the driver github.com/go-sql-driver/mysql
// reads it, without parameters.
func (c *Cluster) DSN(node int, database string) string {
	return fmt.Sprintf("root@tcp(127.0.0.1:%d)/%s", c.first+node, database)
}

// Database makes a fresh, empty database and returns its name.
func (c *Cluster) Database() string {
	c.t.Helper()
	name := fmt.Sprintf("test_%d", c.databases.Add(1))
	if err := c.Exec(1, "CREATE DATABASE "+name); err != nil {
		c.t.Fatal(err)
	}
	return name
}

// Exec runs one statement at a node, on a connection of its own.
func (c *Cluster) Exec(node int, statement string) error {
	return c.at(node, func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

func (c *Cluster) at(node int, do func(context.Context, *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	db, err := sql.Open("mysql", c.DSN(node, ""))
	if err != nil {
		return err
	}
	defer db.Close()
	return do(ctx, db)
}

// Status returns one of the node's status variables; empty if it does not answer.
func (c *Cluster) Status(node int, name string) (value string) {
	_ = c.at(node, func(ctx context.Context, db *sql.DB) error {
		var key string
		return db.QueryRowContext(ctx, "SHOW STATUS WHERE Variable_name = '"+name+"'").Scan(&key, &value)
	})
	return value
}

// Await waits until done reports true, and fails the test when that takes too long.
func (c *Cluster) Await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if done() {
			return
		}
	}
	c.t.Fatalf("galeratest: waited %v for %s", patience, what)
}

// Whole waits until all nodes are in the primary component, and ready.
func (c *Cluster) Whole() {
	c.t.Helper()
	c.Await("all nodes", func() bool {
		for n := range Nodes {
			if c.Status(n+1, "wsrep_cluster_size") != strconv.Itoa(Nodes) || c.Status(n+1, "wsrep_ready") != "ON" {
				return false
			}
		}
		return true
	})
}

// Isolate cuts a node off from the others, until the returned function is called. Clients still reach it.
func (c *Cluster) Isolate(node int) (rejoin func()) {
	c.t.Helper()
	set := func(on int) {
		c.t.Helper()
		if err := c.Exec(node, fmt.Sprintf("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=%d'", on)); err != nil {
			c.t.Fatal(err)
		}
	}
	set(1)
	c.Await("the node to notice", func() bool { return c.Status(node, "wsrep_ready") == "OFF" })
	return func() { set(0); c.Whole() }
}

// Kill kills a node as kill -9 does. The returned function starts it again, and waits until it is back.
func (c *Cluster) Kill(node int) (restart func()) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("node%d.pid", node)))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.Await("the others to notice", func() bool {
		return strings.HasPrefix(c.Status(node%Nodes+1, "wsrep_cluster_size"), strconv.Itoa(Nodes-1))
	})
	return func() {
		c.t.Helper()
		if _, err := c.run(fmt.Sprint("node", node), "node", strconv.Itoa(node), c.dir); err != nil {
			c.t.Fatal(err)
		}
		c.Whole()
	}
}
