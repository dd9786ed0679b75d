package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value parses and shows one setting. An error of set is a sentence fragment for people: what is
// wrong and what to write instead. It repeats the text only where that cannot be a secret.
type value interface {
	set(text string) error
	show() string // as a user would write it
}

// list is a value that takes several texts, each with its own call of set.
type list interface {
	value
	clear()
	items() []string // each as a user would write it in YAML, secrets masked
	example() string // of one text
}

// lone is a list that a single value may stand for in the file.
type lone interface {
	list
	lone()
}

// pairs is a value that takes several texts, each under a key of its own: a group in the file whose
// keys are not settings.
type pairs interface {
	list
	setPair(key, text string) error
}

// text is any string that check accepts; a nil check accepts all.
type text struct {
	to    *string
	check func(string) error
}

func (v text) set(s string) error {
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.to = s
	return nil
}

func (v text) show() string { return *v.to }

// words is a list of strings that check accepts; a nil check accepts all.
type words struct {
	to     *[]string
	sample string
	check  func(string) error
}

func (v words) clear()          { *v.to = nil }
func (v words) show() string    { return strings.Join(*v.to, " ") }
func (v words) example() string { return v.sample }

func (v words) items() []string {
	items := make([]string, len(*v.to))
	for i, s := range *v.to {
		items[i] = yamlText(s)
	}
	return items
}

func (v words) set(s string) error {
	if s == "" {
		return fmt.Errorf("the text is empty; write one such as %s", v.sample)
	}
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.to = append(*v.to, s)
	return nil
}

// choice is one of a few words.
type choice struct {
	to      *string
	options []string
}

func (v choice) set(s string) error {
	if !slices.Contains(v.options, s) {
		return fmt.Errorf("%q is not known; write %s", s, oneOf(v.options))
	}
	*v.to = s
	return nil
}

func (v choice) show() string { return *v.to }

// level is a log level.
type level struct{ to *slog.Level }

func (v level) set(s string) error {
	names := []string{"debug", "info", "warn", "error"}
	if !slices.Contains(names, s) {
		return fmt.Errorf("%q is not a level; write %s", s, oneOf(names))
	}
	return v.to.UnmarshalText([]byte(s))
}

func (v level) show() string { return strings.ToLower(v.to.String()) }

// boolean is true or false, spelled like that.
type boolean struct{ to *bool }

func (v boolean) set(s string) error {
	if s != "true" && s != "false" {
		return fmt.Errorf("%q is neither true nor false; write one of these", s)
	}
	*v.to = s == "true"
	return nil
}

func (v boolean) show() string { return strconv.FormatBool(*v.to) }

// count is a whole number within bounds.
type count struct {
	to       *int
	min, max int
}

func (v count) set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < v.min || n > v.max {
		return fmt.Errorf("%q does not fit; write a whole number from %d to %d", s, v.min, v.max)
	}
	*v.to = n
	return nil
}

func (v count) show() string { return strconv.Itoa(*v.to) }

// address is host:port to listen on.
type address struct{ to *string }

func (v address) set(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port, such as 127.0.0.1:8080", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q has no usable port; write a number from 0 to 65535 after the colon", s)
	}
	*v.to = s
	return nil
}

func (v address) show() string { return *v.to }

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

// checkURL accepts an absolute HTTP address.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil: // its text repeats the address, which may hold a password
		return errors.New("this is not a URL; write one like http://127.0.0.1:3000/webhooks")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("this is not a full HTTP address; write one like http://127.0.0.1:3000/webhooks")
	case u.Fragment != "":
		return errors.New("the URL has a fragment, which is never sent; leave out what follows the #")
	}
	return nil
}

// endpoint is a URL. A password and the query, which may hold a token, are masked when it is shown.
type endpoint struct {
	to *string
	// instead says what somebody may have meant who writes a mere name. Empty: nothing.
	instead string
}

func (v endpoint) set(s string) error {
	err := text{v.to, checkURL}.set(s)
	if err != nil && v.instead != "" && checkName(s) == nil {
		return fmt.Errorf("%w, or %s", err, v.instead)
	}
	return err
}

func (v endpoint) show() string {
	u, err := url.Parse(*v.to)
	if err != nil {
		return mask
	}
	if u.RawQuery != "" {
		u.RawQuery = mask
	}
	return masked(u)
}

// duration is a length of time within bounds, in Go's notation with days in front: 90d, 1d12h, 30s.
type duration struct {
	to       *time.Duration
	min, max time.Duration
}

func (v duration) set(s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a length of time; write a number with its unit, such as 500ms, 30s, 10m, 12h or 90d", s)
	}
	if d < v.min || d > v.max {
		return fmt.Errorf("%s is out of bounds; write a length of time from %s to %s", s, showDuration(v.min), showDuration(v.max))
	}
	*v.to = d
	return nil
}

func (v duration) show() string { return showDuration(*v.to) }

const day = 24 * time.Hour

// parseDuration extends [time.ParseDuration] by a leading number of whole days.
func parseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 15)
	if err != nil {
		return 0, err
	}
	if rest == "" {
		return time.Duration(n) * day, nil
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || d >= day) {
		err = errors.New("the part after the days must be within one day")
	}
	return time.Duration(n)*day + d, err
}

func showDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	if d >= day {
		fmt.Fprintf(&b, "%dd", d/day)
		d %= day
	}
	if d == 0 {
		return b.String()
	}
	s := d.String() // Go writes trailing zero units: 1h0m0s
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return b.String() + s
}

// size is a number of bytes within bounds: 1048576, 512KiB, 64MiB, 1GB.
type size struct {
	to       *int64
	min, max int64
}

var units = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}}

func (v size) set(s string) error {
	n, ok := parseSize(s)
	if !ok {
		return fmt.Errorf("%q is not a size; write a number of bytes or one with its unit, such as 512KiB or 64MiB", s)
	}
	if n < v.min || n > v.max {
		return fmt.Errorf("%s is out of bounds; write a size from %s to %s", s, showSize(v.min), showSize(v.max))
	}
	*v.to = n
	return nil
}

func (v size) show() string { return showSize(*v.to) }

func parseSize(s string) (int64, bool) {
	factor := int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return int64(n) * factor, err == nil
}

func showSize(n int64) string {
	for _, u := range units[:3] {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// oneOf joins words for people: "a, b or c".
func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
