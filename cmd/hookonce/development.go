package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
)

// devSecretFile keeps the secret of the development source in the working folder, so that a restart
// keeps it.
const devSecretFile = "hookonce.dev-secret"

// devSource and devProvider are what a gateway gets that has no source configured.
const (
	devSource   = "dev"
	devProvider = "standard"
)

// development is a gateway without configuration: one Standard Webhooks source with a secret made up
// for it.
type development struct {
	secretFile string
	created    bool // just now
}

// develop adds the development source to the configuration.
func develop(cfg *config.Config) (*development, error) {
	path, err := filepath.Abs(devSecretFile)
	if err != nil {
		return nil, err
	}
	d := &development{secretFile: path}
	secret, err := d.secret()
	if err != nil {
		return nil, err
	}
	s := config.DefaultSource()
	s.Name, s.Provider, s.Secrets = devSource, devProvider, []config.Secret{config.LiteralSecret(secret)}
	cfg.Sources = append(cfg.Sources, s)
	return d, nil
}

// secret reads the secret, or makes one that only this user can read.
func (d *development) secret() (string, error) {
	data, err := os.ReadFile(d.secretFile)
	if err == nil {
		return strings.TrimSpace(string(data)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the secret of the development source can not be read: %w", err)
	}
	random := make([]byte, 24)
	rand.Read(random) // never fails
	secret := "whsec_" + base64.StdEncoding.EncodeToString(random)
	if err := os.WriteFile(d.secretFile, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the secret of the development source can not be kept: %w; run serve in a folder that you can write to", err)
	}
	d.created = true
	return secret, nil
}

// announce says what runs and how to send a first event.
func (d *development) announce(w *world, g *gateway.Gateway) {
	secret := "The secret is kept in " + d.secretFile + "."
	if d.created {
		secret = "Its secret was made up now and is kept in " + d.secretFile + ", readable by you only."
	}
	fmt.Fprintf(w.out, `
No source is configured, so this is a development gateway: one Standard Webhooks source called %q,
stored in this folder and delivered nowhere. %s

Send it a first event, and the same event again:

  %s send http://%s/in/%s --provider %s --secret file:%s --id first

For your own sources write a %s; "hookonce serve --help" lists the settings.

`, devSource, secret, shellQuote(program(w.args[0])), g.Addr(), devSource, devProvider, shellQuote(d.secretFile), defaultFile)
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
