package config

import (
	"errors"
	"strings"
)

// AdminToken lets its bearer use the admin listener.
type AdminToken struct {
	// Name is that of the bearer; it stands in the audit record.
	Name  string
	Token Secret
	// Role is [RoleRead] or [RoleOperator].
	Role string

	origin layer
	at     place
}

// What the bearer of a token may do.
const (
	RoleRead     = "read"     // look at everything
	RoleOperator = "operator" // replay, pause and resume as well
)

// tokenSettings declares every setting of an admin token.
var tokenSettings = []field[AdminToken]{
	{key: "name", bind: func(t *AdminToken) value { return text{&t.Name, checkName} }},
	{key: "token", bind: func(t *AdminToken) value { return outside{reference{&t.Token}} }},
	{key: "role", def: RoleRead, bind: func(t *AdminToken) value { return choice{&t.Role, []string{RoleRead, RoleOperator}} }},
}

// outside is a reference to a secret that cannot stand in the file itself.
type outside struct{ reference }

func (v outside) set(s string) error {
	if !strings.HasPrefix(s, "env:") && !strings.HasPrefix(s, "file:") {
		return errors.New("a token does not belong into this file; write env:NAME or file:PATH")
	}
	return v.reference.set(s)
}

// minToken is how short a token may be, in bytes: less can be guessed.
const minToken = 16

// tokens builds the admin tokens.
func (l *loader) tokens(sections []section) {
	for _, from := range sections {
		t := AdminToken{at: from.at}
		t.origin = apply(l, &t, tokenSettings, from.settings)
		if !l.in.NoSecrets {
			if err := t.Token.resolve(l.in); err != nil {
				l.fault(t.where("token"), "token: %v", err)
			}
		}
		l.cfg.AdminTokens = append(l.cfg.AdminTokens, t)
	}
}

// where returns the place that a setting of the token came from, or that of the token.
func (t *AdminToken) where(key string) place {
	if g, ok := t.origin[key]; ok {
		return g.at
	}
	return t.at
}

// checkTokens looks for what tokens lack, and refuses to open the admin listener to others without any.
func (l *loader) checkTokens() {
	names, secrets := map[string]place{}, map[string]place{}
	for i := range l.cfg.AdminTokens {
		t := &l.cfg.AdminTokens[i]
		for _, need := range []struct{ key, example string }{{"name", "oncall"}, {"token", `"env:ADMIN_TOKEN"`}} {
			if _, written := t.origin[need.key]; !written {
				l.fault(t.at, "an admin token lacks its %s; write %s: and a value such as %s", need.key, need.key, need.example)
			}
		}
		if first, twice := names[t.Name]; twice && t.Name != "" {
			l.fault(t.where("name"), "name: an admin token called %q exists already, at %s; write another name", t.Name, first)
		}
		names[t.Name] = t.where("name")
		l.checkToken(t, secrets)
	}
	if !isLoopbackAddress(l.cfg.Admin) && len(l.cfg.AdminTokens) == 0 {
		l.fault(l.cfg.origin.element("admin", 0), "admin: %q is open to other machines, and there are no admin_tokens; add one, or write a loopback address, such as 127.0.0.1:8081",
			l.cfg.Admin)
	}
}

// checkToken holds the secret of a token against what was seen of others. One that could not be resolved
// is reported already.
func (l *loader) checkToken(t *AdminToken, seen map[string]place) {
	value := t.Token.value
	if value == "" {
		return
	}
	if len(value) < minToken {
		l.fault(t.where("token"), "token: it has %d bytes, which can be guessed; make one of at least %d, such as with: openssl rand -hex 24", len(value), minToken)
	}
	if first, twice := seen[value]; twice {
		l.fault(t.where("token"), "token: this is the token of another one as well, at %s; give each bearer a token of their own", first)
	}
	seen[value] = t.where("token")
}
