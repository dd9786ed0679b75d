package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
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
func develop(w *world, cfg *config.Config) (*development, error) {
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
	d.source.Secrets = []config.Secret{config.LiteralSecret(text)}
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
func (d *development) announce(w *world, g *gateway.Gateway) {
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
		to = u.Redacted()
	}
	return "delivers to " + to
}

// imitable reports whether send signs what the source takes: it knows no settings of the provider hmac.
func (d *development) imitable() bool {
	return d.provider.Spec().Imitable() && reflect.DeepEqual(d.source.HMAC, config.DefaultSource().HMAC)
}

// command is what sends an event, ready for a shell.
func (d *development) command(w *world, endpoint string, known spec.Spec) string {
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
