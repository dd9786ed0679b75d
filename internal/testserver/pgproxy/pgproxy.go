// Package pgproxy stands between clients and a PostgreSQL server and makes an engine with a fault of it: it changes what
// clients say, and what they are answered.
package pgproxy

import (
	"context"
	"net"
	"net/url"
	"regexp"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Fault is what the engine gets wrong. Its functions are called by many connections at once.
type Fault struct {
	// Text returns what the server is told in place of a statement; nil: the statement.
	Text func(sql string) string
	// Request changes any message of a client, after Text; nil: none is.
	Request func(m pgproto3.FrontendMessage)
	// Answer returns what a client is told in place of the server's message, or nil if it is told nothing; nil: the message.
	Answer func(m pgproto3.BackendMessage) pgproto3.BackendMessage
}

// NoOpLocks is an engine that takes calls for advisory locks and locks nothing. The statements in NoOpLocksSetup are run
// before, past the proxy.
var (
	NoOpLocks      = Fault{Text: func(sql string) string { return lockCalls.ReplaceAllString(sql, `shadow.${1}lock(`) }}
	NoOpLocksSetup = []string{`CREATE SCHEMA shadow`, `CREATE FUNCTION shadow.lock(bigint) RETURNS void LANGUAGE sql AS ''`,
		`CREATE FUNCTION shadow.try_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'`}
	lockCalls = regexp.MustCompile(`\bpg_(try_)?advisory_(xact_)?lock\(`)
)

// WithoutLocks starts a proxy as [New] does, before a server whose advisory locks lock nothing.
func WithoutLocks(t testing.TB, dsn string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range NoOpLocksSetup {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return New(t, dsn, NoOpLocks)
}

// New starts a proxy before the server of the connection string, without TLS, until the test ends, and returns the
// connection string that leads through it.
func New(t testing.TB, dsn string, f Fault) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	server := u.Host
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(client, server) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	u.Host = l.Addr().String()
	return u.String()
}

// serve forwards what both sides say until one of them has gone.
func (f Fault) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	back, front := pgproto3.NewBackend(client, client), pgproto3.NewFrontend(server, server)
	start, err := back.ReceiveStartupMessage()
	if err != nil {
		return
	}
	front.Send(start)
	if front.Flush() != nil {
		return
	}
	if _, cancels := start.(*pgproto3.CancelRequest); cancels {
		_, _ = server.Read(make([]byte, 1)) // the server closes when it has understood
		return
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer client.Close()
		f.answers(back, front)
	}()
	f.requests(back, front)
	server.Close()
	<-answered
}

func (f Fault) requests(back *pgproto3.Backend, front *pgproto3.Frontend) {
	for {
		m, err := back.Receive()
		if err != nil {
			return
		}
		if f.Text != nil {
			switch m := m.(type) {
			case *pgproto3.Query:
				m.String = f.Text(m.String)
			case *pgproto3.Parse:
				m.Query = f.Text(m.Query)
			}
		}
		if f.Request != nil {
			f.Request(m)
		}
		front.Send(m)
		if front.Flush() != nil {
			return
		}
	}
}

func (f Fault) answers(back *pgproto3.Backend, front *pgproto3.Frontend) {
	for {
		m, err := front.Receive()
		if err != nil {
			return
		}
		if f.Answer != nil {
			if m = f.Answer(m); m == nil {
				continue
			}
		}
		back.Send(m)
		if back.Flush() != nil {
			return
		}
	}
}
