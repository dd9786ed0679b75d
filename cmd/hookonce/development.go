package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// development is a gateway on which somebody develops: it has one source, and shows what happens.
type development struct {
	source     *config.Source
	store      string // for people
	provider   *spec.Provider
	secret     string // as send takes it
	secretFile string // empty: the secret was given
	created    bool   // just now
	show       *show
}

// develop adds what the configuration leaves to be made up: the source, or only its secret.
func develop(w *env, cfg *config.Config) (*development, error) {
	if len(cfg.Sources) == 0 {
		s := config.DefaultSource()
		s.Name, s.Provider = config.DevSource, config.DevProvider
		cfg.Sources = append(cfg.Sources, s)
	}
	if !cfg.Says("log.level") && isTerminal(w.err) {
		cfg.LogLevel = slog.LevelError // the lines for people say the rest
	}
	d := &development{source: &cfg.Sources[0], store: cfg.Store.String()}
	if d.source.Provider != "" {
		if err := d.addSecret(); err != nil {
			return nil, err
		}
		var err error
		if d.provider, err = d.source.NewProvider(); err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(d.secretFile, "--secret"), err)
		}
	}
	d.show = newShow(w.out)
	return d, nil
}

// ownSecret stands for a secret that was given as it is: it is not written again.
const ownSecret = "YOUR-SECRET"

// addSecret makes sure that there is one.
func (d *development) addSecret() error {
	if len(d.source.Secrets) > 0 {
		if d.secret = d.source.Secrets[0].String(); !isReference(d.secret) {
			d.secret = ownSecret
		}
		return nil
	}
	path, err := filepath.Abs("hookonce." + d.source.Name + "-secret")
	if err != nil {
		return err
	}
	d.secretFile, d.secret = path, "file:"+path
	text, err := d.keep()
	d.source.Secrets = []settings.Secret{settings.Literal(text)}
	return err
}

// keep reads the secret from the working folder, so that a restart keeps it, or makes one that only this user
// can read.
func (d *development) keep() (string, error) {
	data, err := os.ReadFile(d.secretFile)
	if err == nil {
		return strings.TrimSpace(string(data)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the secret of the development source cannot be read: %w", err)
	}
	secret, err := d.source.MakeSecret()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(d.secretFile, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the secret of the development source cannot be kept: %w; run serve in a folder that you can write to", err)
	}
	d.created = true
	return secret, nil
}

// announce says what runs, how to send it an event, and where to point the provider.
func (d *development) announce(w *env, g *gateway.Gateway) {
	endpoint := "http://" + reachable(g.Addr()) + "/in/" + d.source.Name
	fmt.Fprintf(w.out, "\nThis is a development gateway. It stores in %s and %s.\n", d.store, d.delivers())
	if d.provider == nil {
		fmt.Fprintf(w.out, "Send it requests with an Idempotency-Key at %s\n\n", endpoint)
		return
	}
	known := d.provider.Spec()
	if d.imitable() {
		fmt.Fprintf(w.out, "\nSend it a first event, and the same event again:\n\n  %s\n", d.command(w, endpoint, known))
	}
	if known.Name != config.DevProvider {
		fmt.Fprintf(w.out, "\n%s posts to %s\n", known.Title, endpoint)
		fmt.Fprintf(w.out, "which it cannot reach on this machine: register the public address of a tunnel to %s, with the path /in/%s.\n",
			reachable(g.Addr()), d.source.Name)
	}
	next := "Events as they come:"
	if d.source.Mode == config.Observe {
		next = "What came is on record: hookonce report --since 1h"
	}
	fmt.Fprintf(w.out, "\n%s%s\n\n", d.aboutSecret(known), next)
}

func (d *development) delivers() string {
	if d.source.To == "" {
		return "delivers nowhere (--to URL delivers to your app)"
	}
	to := withoutQuery(d.source.To)
	if u, err := url.Parse(to); err == nil {
		to = settings.MaskUser(u)
	}
	return "delivers to " + to
}

// imitable reports whether send signs what the source takes: it knows no settings of the provider hmac.
func (d *development) imitable() bool {
	return d.provider.Spec().Imitable() && reflect.DeepEqual(d.source.HMAC, config.DefaultSource().HMAC)
}

// command is what sends an event, ready for a shell.
func (d *development) command(w *env, endpoint string, known spec.Spec) string {
	id := "first"
	if known.Name != config.DevProvider {
		id = known.Example.NewID()
	}
	words := []string{program(w.args[0]), "send", endpoint, "--provider", d.source.Provider, "--secret", d.secret, "--id", id}
	if known.SignsURL() {
		words = append(words, "--signed-url", d.source.URL)
	}
	for i := range words {
		words[i] = shellQuote(words[i])
	}
	return strings.Join(words, " ")
}

// aboutSecret says where the secret is that nobody gave, and whether the provider can be told it.
func (d *development) aboutSecret(known spec.Spec) string {
	if d.secretFile == "" {
		return ""
	}
	text := "The secret is kept in " + d.secretFile + ".\n"
	if d.created {
		text = "The secret was made up now and is kept in " + d.secretFile + ", readable by you only.\n"
	}
	switch {
	case known.Name == config.DevProvider:
	case known.OwnSecret:
		text += "Enter it at " + known.Title + " as " + known.Secret + ".\n"
	default:
		text += known.Title + " does not know it: for its own events give " + known.Secret + ",\nas --secret env:NAME.\n"
	}
	return text + "\n"
}

// reachable returns the address of a listener as somebody on this machine can connect to it.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// program returns what to type to run this program again: its name if the shell finds it, its full
// path otherwise.
func program(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	found, err := exec.LookPath(filepath.Base(name))
	if err == nil && sameFile(found, self) {
		return filepath.Base(name)
	}
	return self
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// shellQuote returns s as one word for a shell.
func shellQuote(s string) string {
	if strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:=@", r)
	}) < 0 && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// show writes a line for everything that happens to an event. Nothing waits for it: where nobody reads its
// lines, some are left out.
type show struct {
	began time.Time
	lines chan string
	ended chan struct{}

	mu      sync.Mutex
	known   map[int64]bool // events whose line "received" is written
	omitted int
	closed  bool
}

const (
	shownAhead = 1000  // lines that may wait to be written
	shownKnown = 10000 // events that are remembered; whoever is forgotten may be shown as received twice
)

func newShow(out io.Writer) *show {
	s := &show{began: time.Now(), lines: make(chan string, shownAhead), ended: make(chan struct{}), known: map[int64]bool{}}
	go func() {
		defer close(s.ended)
		for line := range s.lines {
			_, _ = io.WriteString(out, line) // the gateway goes on when nobody looks any more
		}
	}()
	return s
}

// lastWords is how long a stop waits for whoever reads.
const lastWords = time.Second

// close writes what is left, as far as somebody reads it. What happens later is not shown.
func (s *show) close() {
	s.mu.Lock()
	s.closed = true
	close(s.lines)
	s.mu.Unlock()
	select {
	case <-s.ended:
	case <-time.After(lastWords):
	}
}

// line writes what happened to an event. The lock is held.
func (s *show) line(what, kind, key, detail string) {
	if s.closed {
		return
	}
	text := fmt.Sprintf("%s  %-10s %s", time.Now().Format(time.TimeOnly), what, clean(kind))
	for _, part := range []string{key, detail} {
		if part != "" {
			text = strings.TrimRight(text, " ") + "  " + clean(part)
		}
	}
	if s.omitted > 0 {
		text = fmt.Sprintf("(%d lines were left out)\n%s", s.omitted, text)
	}
	select {
	case s.lines <- text + "\n":
		s.omitted = 0
	default:
		s.omitted++
	}
}

// received writes the first line of an event, unless it stands there: a delivery may be faster than the answer
// to the sender. The lock is held.
func (s *show) received(id int64, kind, key, detail string) {
	if s.known[id] {
		return
	}
	if len(s.known) >= shownKnown {
		clear(s.known)
	}
	s.known[id] = true
	s.line("received", kind, cmp.Or(key, "(no key: its copies cannot be recognised)"), detail)
}

// Stored implements [ingest.Watcher].
func (s *show) Stored(_ string, e *hookonce.Event, r journal.Result, routed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	detail := ""
	if !routed {
		detail = "no route wanted it: stored, delivered nowhere"
	}
	switch r.Status {
	case journal.Accepted, journal.Unkeyed:
		s.received(r.ID, e.Type, e.Key, detail)
	case journal.Duplicate:
		detail = "came before and is not delivered again"
		if r.Redriven {
			detail = "came before, had failed, and is delivered again"
		}
		s.line("duplicate", e.Type, e.Key, detail)
	case journal.Conflict:
		s.line("conflict", e.Type, e.Key, "came before with other content; the first stands")
	default:
		s.line(string(r.Status), e.Type, e.Key, "")
	}
}

// Greeted implements [ingest.Watcher].
func (s *show) Greeted(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line("handshake", "answered", "", "")
}

// Refused implements [ingest.Watcher].
func (s *show) Refused(r refusals.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line("rejected", strconv.Itoa(r.Status)+" "+r.Reason, r.Path+" from "+r.Address, r.Words)
}

// Attempted implements [deliver.Watcher].
func (s *show) Attempted(w *journal.Work, o journal.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Token == 1 && !w.ReceivedAt.Before(s.began) {
		s.received(w.EventID, w.Type, w.Key, "")
	}
	took := o.Duration.Round(time.Millisecond).String()
	switch o.State {
	case journal.Done:
		s.line("delivered", w.Type, w.Key, fmt.Sprintf("%d in %s", o.Status, took))
	case journal.Failed:
		s.line("failed", w.Type, w.Key, fmt.Sprintf("%s; tried again in %s", o.Error, inSeconds(time.Until(o.Due))))
	case journal.Dead:
		s.line("given up", w.Type, w.Key, o.Error+"; not tried again unless its sender sends it again, or with hookonce events replay")
	}
}

// inSeconds writes a wait for people.
func inSeconds(d time.Duration) string {
	d = max(d.Round(100*time.Millisecond), 100*time.Millisecond)
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
