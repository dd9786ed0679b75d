package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hookonce/hookonce/internal/closest"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider"
)

// The bounds of a length of time that has none of its own.
const (
	briefly = time.Millisecond
	forever = 100 * 365 * settings.Day
)

// longestExpected is below the time for which it is on record in which hours something came, which is tally.KeepHours.
const longestExpected = 90 * settings.Day

// longestPatience leaves the listener the time to write the answer.
const longestPatience = 25 * time.Second

// The bounds of a rate: one in some fifteen minutes, and more than one machine does.
const (
	minRate = 0.001
	maxRate = 1_000_000
)

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
	schemaPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
)

// maxName keeps names usable as labels and in URLs.
const maxName = 64

func checkName(s string) error {
	if len(s) > maxName {
		return fmt.Errorf("the name has %d characters; write at most %d", len(s), maxName)
	}
	if !namePattern.MatchString(s) {
		return fmt.Errorf("%q cannot be a name; write lower-case letters, digits, - and _, beginning with a letter or digit", s)
	}
	return nil
}

func checkSchema(s string) error {
	if !schemaPattern.MatchString(s) || strings.HasPrefix(s, "pg_") {
		return fmt.Errorf("%q cannot be a schema; write at most 48 lower-case letters, digits and _, beginning with a letter, not with pg_", s)
	}
	return nil
}

func checkHeader(s string) error {
	if !header.ValidName(s) {
		return errors.New("this is not the name of a header; write one like X-Signature")
	}
	return nil
}

func checkWholeName(s string) error {
	if strings.Contains(s, "*") {
		return errors.New("write whole names, without a star; only also_pass takes beginnings")
	}
	return checkHeader(s)
}

// The providers that are configured wholly by their source: in a few settings, or by a specification.
const (
	providerHMAC   = "hmac"
	providerCustom = "custom"
)

// checkProvider accepts the names of the catalogue.
func checkProvider(s string) error {
	_, err := provider.Lookup(s)
	switch _, near := closest.Word(s, []string{providerCustom}); {
	case s == providerCustom:
		return nil
	case near && err != nil:
		return fmt.Errorf("%w: %q; did you mean %q?", provider.ErrUnknown, s, providerCustom)
	}
	return err
}

func checkHost(s string) error {
	if s == "" || strings.ContainsAny(s, "/:@ \x00") {
		return errors.New("this is not the name of a host; write one such as ledger.internal")
	}
	return nil
}

func checkPort(port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("%d is not a port; write a number from 1 to 65535", port)
	}
	return nil
}

// maxPattern is the length of the longest event type.
const maxPattern = 255

func checkPattern(s string) error {
	if len(s) > maxPattern || strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return fmt.Errorf("this matches no event type; write at most %d printable characters, with * for any others", maxPattern)
	}
	return nil
}

// checkExact accepts the types that somebody means by name.
func checkExact(s string) error {
	if strings.Contains(s, "*") {
		return fmt.Errorf("%q is a pattern, and logical duplicates are dropped only for types that are named; write each one", s)
	}
	return checkPattern(s)
}

// checkLink accepts an address that can stand in a header Link.
func checkLink(s string) error {
	if strings.ContainsAny(s, `<>"`) {
		return errors.New("the URL has a character that must be escaped there; write %3C for <, %3E for > and %22 for a quote")
	}
	return settings.CheckURL(s)
}

// scopeOfAll is the scope that all callers share.
const scopeOfAll = "none"

func checkScope(s string) error {
	name, ok := strings.CutPrefix(s, "header:")
	if s == scopeOfAll {
		return nil
	}
	if ok && checkHeader(name) == nil {
		return checkDecisive(name)
	}
	return errors.New("this does not tell callers apart; write header: and the name of a header, such as header:Authorization, or none")
}

// checkDecisive accepts the headers by which callers or requests can be told apart: what is looked at has to be what
// the service sees.
func checkDecisive(name string) error {
	switch {
	case header.Rewritten(name):
		return fmt.Errorf("%s does not reach the service as it was sent: it belongs to the connection, or is set by the gateway; name a header that the service sees, such as Authorization", name)
	case header.Fold(name) == "idempotency-key":
		return fmt.Errorf("%s is the key itself, and tells neither callers nor requests apart; remove it", name)
	}
	return checkHeader(name)
}

// isLoopbackAddress reports whether only this machine reaches an address.
func isLoopbackAddress(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// isPrivate reports whether a host is known not to be public before it is resolved.
func isPrivate(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost"
	}
	ip = ip.Unmap()
	return !ip.IsGlobalUnicast() || ip.IsPrivate()
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	port, err := net.LookupPort("tcp", u.Scheme)
	if err != nil {
		return 0
	}
	return port
}
