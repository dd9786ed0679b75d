package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// mailbox sends mail to one receiver. Package shoutrrr has a sender for it that waits for ever for a server that does not answer,
// has those who got a mail get it again with the others, and sets no Message-ID.
type mailbox struct {
	opt Options
	mailSettings
	to    string
	lines chan struct{} // connections that its server may have, with those for the other receivers
}

// maxLines is how many mails of one address are on their way at once: servers take so many connections of one client. Each has a
// connection of its own, because some servers end it, and others make it wait, when they do not know the receiver.
const maxLines = 4

// mailSettings is what the address of a mailbox says.
type mailSettings struct {
	host           string
	port           int
	implicit       bool // TLS from the beginning
	plain          bool // no TLS
	user, password string
	from           *mail.Address
	receivers      []string
}

// readMail reads the address of a mailbox: smtp://[user:password@]host[:port]?from=ADDRESS&to=ADDRESS[,ADDRESS...][&tls=none].
func readMail(u *url.URL) (s mailSettings, err error) {
	s = mailSettings{host: u.Hostname(), implicit: u.Scheme == "smtps", port: 587, user: u.User.Username()}
	s.password, _ = u.User.Password()
	if s.implicit {
		s.port = 465
	}
	if s.host == "" || strings.Trim(u.Path, "/") != "" {
		return s, errors.New("write smtp://user:password@host:587?from=ADDRESS&to=ADDRESS")
	}
	if u.Port() != "" {
		if s.port, err = strconv.Atoi(u.Port()); err != nil || s.port < 1 || s.port > 65535 {
			return s, errors.New("the port is none; write a number from 1 to 65535")
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return s, errors.New("what follows the question mark cannot be read; write from=ADDRESS&to=ADDRESS, with %2B for a plus sign")
	}
	for key := range query {
		if !slices.Contains([]string{"from", "to", "tls"}, key) {
			return s, errors.New("what follows the question mark can be from, to and tls; leave out the rest")
		}
	}
	switch query.Get("tls") {
	case "":
	case "none":
		s.plain = true
	default:
		return s, errors.New("tls can be none, for a server without; leave it out otherwise")
	}
	if s.plain && (s.implicit || s.user != "" && !loopback(s.host)) {
		return s, errors.New("tls=none would show the password to the network; leave it out")
	}
	if s.from, err = mail.ParseAddress(query.Get("from")); err != nil {
		return s, errors.New("from is no mail address; write from=hookonce@example.com")
	}
	listed := strings.Split(strings.Join(query["to"], ","), ",")
	if len(listed) > maxReceivers {
		return s, fmt.Errorf("to has %d addresses, and %d are the most; write that of a list", len(listed), maxReceivers)
	}
	for _, to := range listed {
		a, err := mail.ParseAddress(strings.TrimSpace(to))
		if err != nil {
			return s, errors.New("to has something that is no mail address; write to=a@example.com, or several with commas between")
		}
		if !slices.Contains(s.receivers, a.Address) {
			s.receivers = append(s.receivers, a.Address)
		}
	}
	return s, nil
}

// maxReceivers is how many receivers one address may name.
const maxReceivers = 50

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// newMail returns what sends to each of the receivers.
func newMail(u *url.URL, o Options) (senders []sender, err error) {
	s, err := readMail(u)
	lines := make(chan struct{}, maxLines)
	for _, to := range s.receivers {
		senders = append(senders, &mailbox{o, s, to, lines})
	}
	return senders, err
}

func (b *mailbox) send(ctx context.Context, m *Message) (string, error) {
	message, err := b.message(m)
	if err != nil {
		return "", err
	}
	select {
	case b.lines <- struct{}{}:
		defer func() { <-b.lines }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	var conn net.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close() // the library leaves it open where a server has no TLS
		}
	}()
	client, err := b.client(func(_ context.Context, network, address string) (net.Conn, error) {
		if conn, err = b.dial(ctx, network, address); err != nil {
			return nil, err
		}
		return conn, nil
	})
	if err != nil {
		return "", err
	}
	if err := client.DialAndSendWithContext(ctx, message); err != nil && !message.IsDelivered() {
		return "", err
	}
	return message.ServerResponse(), nil
}

func (b *mailbox) message(m *Message) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	err := errors.Join(message.From(b.from.String()), message.To(b.to))
	_, domain, _ := strings.Cut(b.from.Address, "@")
	message.Subject(cut(m.Title, MaxTitle))
	message.SetDateWithValue(m.At)
	message.SetMessageIDWithValue(opaque(m.Key) + "@" + domain)
	thread := "<" + opaque("thread "+m.Thread) + "@" + domain + ">"
	message.SetGenHeader(gomail.HeaderReferences, thread)
	message.SetGenHeader(gomail.HeaderInReplyTo, thread)
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	return message, err
}

// dial connects to the server. Whatever that does, the connection can be used until ctx ends and no longer.
func (b *mailbox) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := b.opt.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		c = bounded{c, end}
	}
	if b.implicit {
		c = tls.Client(c, b.tls())
	}
	return c, nil
}

// mailRoots are who may vouch for a mail server. Nil means whom the system trusts. Tests trust their own.
var mailRoots *x509.CertPool

func (b *mailbox) tls() *tls.Config {
	return &tls.Config{ServerName: b.host, MinVersion: tls.VersionTLS12, RootCAs: mailRoots}
}

// client returns what talks to the server.
func (b *mailbox) client(dial gomail.DialContextFunc) (*gomail.Client, error) {
	policy := gomail.TLSMandatory
	if b.implicit || b.plain {
		policy = gomail.NoTLS
	}
	options := []gomail.Option{gomail.WithPort(b.port), gomail.WithTimeout(sendTime), gomail.WithDialContextFunc(dial), gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(b.tls())}
	switch {
	case b.user == "":
	case b.implicit:
		options = append(options, gomail.WithSMTPAuthCustom(&login{mailSettings: b.mailSettings}))
	default:
		kind := gomail.SMTPAuthAutoDiscover
		if b.plain {
			kind = gomail.SMTPAuthPlainNoEnc
		}
		options = append(options, gomail.WithSMTPAuth(kind), gomail.WithUsername(b.user), gomail.WithPassword(b.password))
	}
	return gomail.NewClient(b.host, options...)
}

// login says who we are over a connection that was TLS from the beginning, in a way that the server offers. The library takes
// such a connection for a plain one, for it did not make it, and by itself would not send a password over it.
type login struct {
	mailSettings
	smtp.Auth
}

func (l *login) Start(server *smtp.ServerInfo) (string, []byte, error) {
	for _, way := range []struct {
		name string
		auth smtp.Auth
	}{
		{"PLAIN", smtp.PlainAuth("", l.user, l.password, l.host, false)},
		{"LOGIN", smtp.LoginAuth(l.user, l.password, l.host, false)},
		{"SCRAM-SHA-256", smtp.ScramSHA256Auth(l.user, l.password)},
		{"SCRAM-SHA-1", smtp.ScramSHA1Auth(l.user, l.password)},
		{"CRAM-MD5", smtp.CRAMMD5Auth(l.user, l.password)},
	} {
		if slices.Contains(server.Auth, way.name) {
			l.Auth = way.auth
			return l.Auth.Start(server)
		}
	}
	return "", nil, errors.New("it takes passwords in none of the ways PLAIN, LOGIN, SCRAM-SHA-256, SCRAM-SHA-1 and CRAM-MD5")
}

// bounded is a connection that nobody may use for longer.
type bounded struct {
	net.Conn
	end time.Time
}

func (c bounded) SetDeadline(t time.Time) error {
	if t.IsZero() || t.After(c.end) {
		t = c.end
	}
	return c.Conn.SetDeadline(t)
}
