package config

import (
	"errors"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// secretSettings declares what an element of secrets can say, where it is a group of settings.
var secretSettings = []field[Secret]{
	{key: "secret", bind: func(s *Secret) value { return reference{s} }},
	{key: "from", bind: func(s *Secret) value { return instant{&s.From} }},
	{key: "until", bind: func(s *Secret) value { return instant{&s.Until} }},
}

// secrets is the secrets of a source, each of which may have a time of validity.
type secrets struct{ references }

// grouped is a list whose elements may be groups of settings.
type grouped interface {
	list
	setGroup(l *loader, key string, from located)
}

// setGroup adds a secret with its time of validity.
func (v secrets) setGroup(l *loader, key string, from located) {
	says, s := layer{}, Secret{}
	for _, e := range from.group {
		if _, ok := find(secretSettings, e.key); !ok { // not quoted: {whsec_...} has the secret as its key
			l.fault(e.at, "%s: a key that is none here; a secret alone stands without braces%s", key, suggest(e.key, parts(secretSettings, "")))
			says["secret"] = given{at: e.at} // one fault is enough
			continue
		}
		collect(l, says, secretSettings, "", e)
	}
	apply(l, &s, secretSettings, says)
	_, named := says["secret"]
	switch {
	case !named:
		l.fault(from.at, "%s: this names no secret; write {secret: \"env:NAME\", from: 2026-01-01T00:00:00Z}", key)
	case !s.From.IsZero() && !s.Until.IsZero() && !s.From.Before(s.Until):
		l.fault(says["until"].at, "%s: the secret is never valid, because until is not after from; write a later until", key)
	}
	*v.to = append(*v.to, s)
}

// reference is a single secret. See [secrets].
type reference struct{ to *Secret }

func (v reference) set(s string) error {
	err := checkReference(s)
	if err != nil {
		s = ""
	}
	v.to.ref = s
	return err
}

func (v reference) show() string { return v.to.String() }

// instant is a point in time.
type instant struct{ to *time.Time }

func (v instant) set(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return errors.New("this is not a time; write one such as 2026-11-01T00:00:00Z") // it may be a secret in the wrong place
	}
	if t.IsZero() {
		return errors.New("this time stands for none at all; leave it out")
	}
	*v.to = t
	return nil
}

func (v instant) show() string { return v.to.Format(time.RFC3339) }

// yaml returns the secret as it stands in a list in the file.
func (s Secret) yaml() string {
	if s.From.IsZero() && s.Until.IsZero() {
		return yamlText(s.String())
	}
	text := "{secret: " + yamlText(s.String())
	if !s.From.IsZero() {
		text += ", from: " + yamlText(instant{&s.From}.show())
	}
	if !s.Until.IsZero() {
		text += ", until: " + yamlText(instant{&s.Until}.show())
	}
	return text + "}"
}

// spec returns the secret in the form that providers take.
func (s Secret) spec() spec.Secret { return spec.Secret{Text: s.value, From: s.From, Until: s.Until} }

// checkValidity warns about secrets that are not valid at all times, and most of all about a source
// that has none now.
func (l *loader) checkValidity(s *Source) {
	now, valid := l.in.now(), 0
	for i, secret := range s.Secrets {
		at := s.origin.element("secrets", i)
		switch from, until := secret.From, secret.Until; {
		case now.Before(from):
			l.warn(at, "secrets: %s is not valid before %s", secret, instant{&from}.show())
			continue
		case !until.IsZero() && !now.Before(until):
			l.warn(at, "secrets: %s is not valid since %s; remove it", secret, instant{&until}.show())
			continue
		case !until.IsZero():
			l.warn(at, "secrets: %s is valid until %s", secret, instant{&until}.show())
		}
		valid++
	}
	if valid == 0 && len(s.Secrets) > 0 {
		l.warn(s.where("secrets"), "secrets: none of source %q is valid now, so that every request is answered 503; add the current one", s.Name)
	}
}
