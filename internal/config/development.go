package config

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// What a source of a gateway has on which somebody develops, where nothing else is said.
const (
	DevSource   = "dev"
	DevProvider = "standard"
)

// developmentDefaults are those of settings that have others in development: whoever looks on does not wait
// for minutes until an app that was mended is tried again, nor lose the event that it was mended for.
var developmentDefaults = []struct{ key, text string }{
	{"delivery.attempts", "1000"},
	{"delivery.backoff", "1s"},
	{"delivery.backoff_max", "5s"},
}

// developmentPlace is where the settings come from that nobody wrote.
var developmentPlace = place{name: "development"}

// development returns what is assumed of the only source, which the environment and the command line describe
// in layers: nothing, unless its name is missing, or its provider and its secrets are.
func (l *loader) development(layers ...layer) layer {
	says := func(key string) (text string) {
		for _, from := range layers {
			if g, ok := from[key]; ok {
				text = g.text()
			}
		}
		return text
	}
	name, provider := says("name"), says("provider")
	service := says("mode") == Idempotent // which has neither provider nor secrets
	if name != "" && (service || provider != "" || says("secrets") != "") {
		return nil
	}
	l.cfg.Development = true
	assumed := layer{"name": assume(cmp.Or(provider, DevSource))}
	if !service {
		assumed["provider"] = assume(DevProvider)
	}
	return assumed
}

func assume(text string) given {
	return given{at: developmentPlace, texts: []located{{text: text, at: developmentPlace}}}
}

// develop gives a development gateway the defaults that it has of its own.
func (l *loader) develop() {
	l.cfg.Development = l.cfg.Development || len(l.cfg.Sources) == 0 && l.in.Path == ""
	if !l.cfg.Development {
		return
	}
	for _, own := range developmentDefaults {
		if _, written := l.cfg.origin[own.key]; written {
			continue
		}
		f, _ := find(settings, own.key)
		set(l, f.bind(l.cfg), own.key, assume(own.text))
		l.cfg.origin[own.key] = assume(own.text)
	}
	for i := range l.cfg.Sources {
		if s := &l.cfg.Sources[i]; !s.has("handshakes") && s.greets() {
			s.Handshakes = true
			s.origin["handshakes"] = assume("true")
		}
	}
}

// greets reports whether the source's provider sends a challenge before it registers an address, for whose
// answer nothing more is needed.
func (s *Source) greets() bool {
	known, err := s.spec()
	if err != nil || len(known.Handshakes) == 0 {
		return false
	}
	secret, err := s.MakeSecret() // any will do
	if err != nil {
		return false
	}
	settings := s.settings(LiteralSecret(secret))
	settings.Handshakes, settings.Tolerance = true, 0
	_, err = s.build(settings)
	return err == nil
}

// MakeSecret makes up a secret in the form that the source's provider has, for a sender that can be told it or
// imitated. It is an error if there can be none: the provider signs with a key that only it has, or with
// something that has to be looked up.
func (s *Source) MakeSecret() (string, error) {
	known, err := s.spec()
	if err != nil {
		return "", err
	}
	random := make([]byte, 24)
	rand.Read(random)                         // never fails
	secret := hex.EncodeToString(random[:16]) // good as text, as hexadecimal and as base64
	if strings.Contains(known.Secret, "whsec_") {
		secret = "whsec_" + base64.StdEncoding.EncodeToString(random)
	}
	if !known.Imitable() {
		return "", fmt.Errorf("%s signs with a key that only it has", known.Title)
	}
	_, err = s.build(spec.Settings{Secrets: spec.Secrets(secret)})
	return secret, err
}

// checkLoop finds an address that is this gateway's own: it would send itself what it receives.
func (l *loader) checkLoop(at place, key string, to *url.URL) {
	for _, own := range []struct{ setting, address string }{{"listen", l.cfg.Listen}, {"admin", l.cfg.Admin}} {
		host, port, err := net.SplitHostPort(own.address)
		if err != nil || port == "0" || port != strconv.Itoa(portOf(to)) || !meets(host, to.Hostname()) {
			continue
		}
		l.fault(at, "%s: %s is the address of %s, and so of the gateway itself; write that of your app, or give %s another port",
			key, to.Host, own.setting, own.setting)
	}
}

// meets reports whether who connects to host surely comes to a listener on the address own.
func meets(own, host string) bool {
	if strings.EqualFold(own, host) {
		return true
	}
	named := strings.EqualFold(host, "localhost")
	local := named
	if ip, err := netip.ParseAddr(host); err == nil {
		local = ip.IsLoopback() || ip.IsUnspecified()
	}
	listens, err := netip.ParseAddr(own)
	everywhere := own == "" || err == nil && listens.IsUnspecified()
	return local && (everywhere || named && (own == "127.0.0.1" || own == "::1"))
}
