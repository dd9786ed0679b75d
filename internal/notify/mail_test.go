package notify_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/notify"
)

// mailServer stands for a mail server. It answers by a line, or else by its first word; what it has no answer for ends the
// connection, and an answer that is empty is never given.
type mailServer struct {
	net.Listener
	answers map[string]string
	said    chan string // all lines of one connection
	tls     *tls.Config // of STARTTLS
}

func newMailServer(t *testing.T, answers map[string]string) *mailServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveMail(t, l, nil, answers)
}

// serveMail has a mail server on a listener, with TLS by STARTTLS if there is a configuration of it.
func serveMail(t *testing.T, l net.Listener, starttls *tls.Config, answers map[string]string) *mailServer {
	t.Helper()
	t.Cleanup(func() { _ = l.Close() })
	s := &mailServer{Listener: l, answers: map[string]string{
		"": "220 mail.test ESMTP", "EHLO": "250-mail.test\r\n250-8BITMIME\r\n250 AUTH PLAIN", "AUTH": "235 welcome", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on",
		".": "250 2.0.0 taken as 4F2A", "NOOP": "250 ok", "RSET": "250 ok", "QUIT": "221 bye",
	}, said: make(chan string, 8), tls: starttls}
	for word, answer := range answers {
		s.answers[word] = answer
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return s
}

func (s *mailServer) answerTo(line string) (answer string, ok bool) {
	if answer, ok = s.answers[line]; !ok {
		word, _, _ := strings.Cut(line, " ")
		answer, ok = s.answers[strings.ToUpper(word)]
	}
	return answer, ok && answer != mailEnds
}

// mailEnds is the answer of a server that ends the connection.
const mailEnds = "ends"

func (s *mailServer) serve(c net.Conn) {
	var said strings.Builder
	defer func() { _ = c.Close(); s.said <- said.String() }()
	fmt.Fprint(c, s.answers[""], "\r\n")
	lines, body := bufio.NewScanner(c), false
	for lines.Scan() {
		line := lines.Text()
		said.WriteString(line + "\n")
		if body && line != "." {
			continue
		}
		answer, ok := s.answerTo(line)
		switch {
		case !ok:
			return
		case answer == "":
			continue
		}
		body = strings.HasPrefix(answer, "354")
		fmt.Fprint(c, answer, "\r\n")
		if line == "STARTTLS" {
			c = tls.Server(c, s.tls)
			lines = bufio.NewScanner(c)
		}
	}
}

// A server with TLS, from the beginning or by STARTTLS, gets the password in a way that it offers.
func TestMailOverTLSWithAPassword(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	notify.TrustMail(t, roots)
	secure := &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
	ehlo := func(ways string) map[string]string {
		return map[string]string{
			"EHLO": "250-mail.test\r\n250-STARTTLS\r\n250 AUTH " + ways, "STARTTLS": "220 go on", // of LOGIN: what it asks for, and in base64 what it gets
			"AG9VA29UY2U=": "334 UGFzc3dvcmQ6", "AHVUDGVYMG==": "235 welcome",
		}
	}
	login := ehlo("LOGIN XOAUTH2")
	login["AUTH"] = "334 VXNlcm5hbWU6"
	for name, of := range map[string]struct {
		answers map[string]string
		want    string // empty: it fails
	}{
		"PLAIN and LOGIN": {ehlo("PLAIN LOGIN"), "AUTH PLAIN AGhvb2tvbmNlAGh1bnRlcjI=\n"},
		"LOGIN":           {login, "AUTH LOGIN\naG9va29uY2U=\naHVudGVyMg==\n"},
		"XOAUTH2":         {ehlo("XOAUTH2"), ""},
	} {
		for _, scheme := range []string{"smtps", "smtp"} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				if scheme == "smtps" {
					l = tls.NewListener(l, secure)
				}
				server := serveMail(t, l, secure, of.answers)
				c := channel(t, scheme+"://hookonce:hunter2@"+l.Addr().String()+"?from=hookonce@example.com&to=a@example.com", nil)
				_, err = c.Send(t.Context(), message())
				said := <-server.said
				if (err == nil) != (of.want != "") || !strings.Contains(said, of.want) || of.want == "" && strings.Contains(said, "AUTH") {
					t.Errorf("%v, and it said\n%s", err, said)
				}
			})
		}
	}
}

// A mail has the title as its subject, a Message-ID that is the same whenever it is sent again, and what holds a thread together.
func TestMail(t *testing.T) {
	server := newMailServer(t, nil)
	c := channel(t, "smtp://hookonce:hunter2@"+server.Addr().String()+"?from=hookonce@example.com&to=a@example.com&tls=none", nil)
	var ids []string
	for range 2 {
		answer, err := c.Send(t.Context(), message())
		if err != nil || !strings.Contains(answer, "taken as 4F2A") {
			t.Fatalf("%q, %v", answer, err)
		}
		said := <-server.said
		for _, want := range []string{
			"MAIL FROM:<hookonce@example.com>", "RCPT TO:<a@example.com>", "To: <a@example.com>\n", "Subject: PAGE ledger: 500 Internal Server Error\n",
			"Auto-Submitted: auto-generated\n", "References: <msg_", "Content-Type: text/plain; charset=UTF-8\n", "ledger has been failing since 02:14:00Z.\n", "Next: hookonce doctor\n",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is missing in:\n%s", want, said)
			}
		}
		_, id, _ := strings.Cut(said, "Message-ID: ")
		id, _, _ = strings.Cut(id, "\n")
		ids = append(ids, id)
	}
	if ids[0] != ids[1] || !strings.HasSuffix(ids[0], "@example.com>") {
		t.Errorf("identifiers %q", ids)
	}
}

// A mail that the server has taken was told, whatever the server says afterwards: it is not sent again.
func TestMailIsDeliveredOnce(t *testing.T) {
	for _, word := range []string{"RSET", "QUIT"} {
		server := newMailServer(t, map[string]string{word: "421 shutting down"})
		c := channel(t, "smtp://"+server.Addr().String()+"?from=hookonce@example.com&to=a@example.com&tls=none", nil)
		if answer, err := c.Send(t.Context(), message()); err != nil || !strings.Contains(answer, "taken as 4F2A") {
			t.Errorf("after %s fails: %q, %v", word, answer, err)
		}
	}
}

// Each receiver of a mail is a channel of its own, with a connection of its own: one whom the server refuses keeps it from nobody
// else, whether the server says so, ends the connection, or says nothing more.
func TestEachReceiverIsMailed(t *testing.T) {
	notify.SetSendTime(t, 3*time.Second) // of which only the one that hangs takes all
	for name, answer := range map[string]string{"refuses": "550 no such user", "ends the connection": mailEnds, "hangs": ""} {
		t.Run(name, func(t *testing.T) {
			server := newMailServer(t, map[string]string{"RCPT TO:<gone@example.com>": answer})
			all := channels(t, "smtp://"+server.Addr().String()+"?from=hookonce@example.com&to=gone@example.com,a@example.com,a@example.com,b@example.org&tls=none", nil)
			if len(all) != 3 {
				t.Fatalf("%d channels", len(all))
			}
			for i, to := range []string{"gone@example.com", "a@example.com", "b@example.org"} {
				_, err := all[i].Send(t.Context(), message())
				if said := <-server.said; (err != nil) != (i == 0) || strings.Count(said, "RCPT") != 1 || !strings.Contains(said, "RCPT TO:<"+to+">") {
					t.Errorf("%s: %v, and the server heard\n%s", all[i].Name(), err, said)
				}
			}
		})
	}
}

// Of the mails of one address four are on their way at once: servers take so many connections of one client.
func TestMailsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		never := func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		all, err := notify.New(notify.Config{Name: "oncall", Address: "smtp://127.0.0.1:25?from=a@example.com&to=b@example.com,c@example.com,d@example.com,e@example.com,f@example.com&tls=none"}, notify.Options{Dial: never})
		if err != nil {
			t.Fatal(err)
		}
		var sent sync.WaitGroup
		for _, c := range all {
			sent.Go(func() {
				if _, err := c.Send(t.Context(), message()); err == nil {
					t.Error("it was sent")
				}
			})
		}
		synctest.Wait()
		if n := dials.Load(); n != 4 {
			t.Errorf("%d connections at once", n)
		}
		sent.Wait()
	})
}

// A mail server for whose certificate nobody vouches that is trusted gets no password, and no mail.
func TestMailServersThatNobodyKnows(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	secure := &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
	for _, scheme := range []string{"smtps", "smtp"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if scheme == "smtps" {
			l = tls.NewListener(l, secure)
		}
		server := serveMail(t, l, secure, map[string]string{"EHLO": "250-mail.test\r\n250-STARTTLS\r\n250 AUTH PLAIN", "STARTTLS": "220 go on"})
		c := channel(t, scheme+"://hookonce:hunter2@"+l.Addr().String()+"?from=hookonce@example.com&to=a@example.com", nil)
		_, err = c.Send(t.Context(), message())
		if said := <-server.said; err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(said, "AUTH") || strings.Contains(said, "MAIL") {
			t.Errorf("%s: %v, and it said\n%s", scheme, err, said)
		}
	}
}

// What a mail server refuses is told in its words, without the password, and one that has no TLS does not get the password.
func TestMailServersThatFail(t *testing.T) {
	const query = "?from=hookonce@example.com&to=a@example.com"
	for name, of := range map[string]struct {
		answers map[string]string
		query   string
		want    string
	}{
		"refuses the password": {map[string]string{"AUTH": "535 5.7.8 who is hunter2hunter2?"}, query + "&tls=none", "535"},
		"refuses a receiver":   {map[string]string{"RCPT": "550 no such user"}, query + "&tls=none", "550"},
		"refuses the mail":     {map[string]string{".": "554 it looks like advertising"}, query + "&tls=none", "advertising"},
		"breaks off":           {map[string]string{"DATA": "421 bye", ".": "421"}, query + "&tls=none", "421"},
		"has no TLS":           {nil, query, "STARTTLS"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newMailServer(t, of.answers)
			c := channel(t, "smtp://hookonce:hunter2hunter2@"+server.Addr().String()+of.query, nil)
			_, err := c.Send(t.Context(), message())
			if err == nil || !strings.Contains(err.Error(), of.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want %q", err, of.want)
			}
			if said := <-server.said; of.answers == nil && strings.Contains(said, "AUTH") {
				t.Errorf("it got the password:\n%s", said)
			}
		})
	}
}

// A mail server that hangs in the middle is given up, and its connection is closed.
func TestMailServerThatHangs(t *testing.T) {
	server := newMailServer(t, map[string]string{"MAIL": ""})
	c := channel(t, "smtp://"+server.Addr().String()+"?from=hookonce@example.com&to=a@example.com&tls=none", nil)
	notify.SetSendTime(t, 50*time.Millisecond)
	if _, err := c.Send(t.Context(), message()); err == nil {
		t.Error("it was sent")
	}
	<-server.said // the connection is closed
}
