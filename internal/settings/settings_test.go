package settings

import (
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// server is a configuration of every kind of thing that a table can say.
type server struct {
	Addr   string
	Mode   string
	Wait   time.Duration
	Tags   []string
	Token  Secret
	Tokens []Secret
}

var table = Table[server]{
	{Key: "addr", Default: "127.0.0.1:80", Restart: true, Bind: func(s *server) Value { return Address(&s.Addr) }},
	{Key: "mode", Default: "slow", Bind: func(s *server) Value { return Choice(&s.Mode, "slow", "fast") }},
	{Key: "limits.wait", Default: "5s", Bind: func(s *server) Value { return Duration(&s.Wait, time.Second, time.Hour) },
		For: func(s *server) bool { return s.Mode == "slow" }},
	{Key: "tags", Bind: func(s *server) Value { return Names(&s.Tags, "blue", nil) }},
	{Key: "token", Bind: func(s *server) Value { return Reference(&s.Token) }},
	{Key: "tokens", Flag: "one-token", Bind: func(s *server) Value { return RotatingReferences(&s.Tokens) }},
}

// read builds a server from all layers.
func read(t *testing.T, file string, environ []string, args ...string) (*server, Layer, *Report) {
	t.Helper()
	r, says := new(Report), Layer{}
	if root := Parse(r, "f", []byte(file)); root != nil {
		for _, e := range root.Mapping {
			Collect(r, says, table, e)
		}
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Declare(flags, table)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	s := new(server)
	return s, Apply(r, s, table, says, Environment(environ, table), Flags(flags, table)), r
}

// The file is over the default, the environment over the file, and flags are over all; what is wrong is
// reported even where something else overrides it.
func TestLayers(t *testing.T) {
	for _, c := range []struct {
		name, file string
		environ    []string
		args       []string
		want, from string
	}{
		{"default", "", nil, nil, "5s", ""},
		{"file", "limits: {wait: 6s}", nil, nil, "6s", "f:1:10"},
		{"environment", "limits: {wait: 6s}", []string{"HOOKONCE_LIMITS_WAIT=7s"}, nil, "7s", "HOOKONCE_LIMITS_WAIT"},
		{"flag", "limits: {wait: 6s}", []string{"HOOKONCE_LIMITS_WAIT=7s"}, []string{"--limits-wait=8s"}, "8s", "--limits-wait"},
		{"fault beneath", "limits: {wait: soon}", nil, []string{"--limits-wait=8s"}, "8s", "--limits-wait"},
	} {
		s, origin, r := read(t, c.file, c.environ, c.args...)
		if got := ShowDuration(s.Wait); got != c.want || origin["limits.wait"].At.String() != c.from {
			t.Errorf("%s: %s from %s, want %s from %s", c.name, got, origin["limits.wait"].At, c.want, c.from)
		}
		if r.Clean() == (c.name == "fault beneath") {
			t.Errorf("%s: %v", c.name, r.Err())
		}
	}
}

// A list has all its elements from each layer, and those of one layer take the place of another's.
func TestListsOfLayers(t *testing.T) {
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		want    []string
	}{
		{"file", nil, nil, []string{"red", "green"}},
		{"environment", []string{"HOOKONCE_TAGS=blue  black"}, nil, []string{"blue", "black"}},
		{"flag", []string{"HOOKONCE_TAGS=blue black"}, []string{"--tags=white", "--tags", "grey"}, []string{"white", "grey"}},
	} {
		s, _, r := read(t, "tags: [red, green]", c.environ, c.args...)
		if diff := cmp.Diff(c.want, s.Tags); diff != "" || !r.Clean() {
			t.Errorf("%s: %s, %v", c.name, diff, r.Err())
		}
	}
}

// A fault says where it is, what is wrong, and what to write; those of the file come first, by line.
func TestFaults(t *testing.T) {
	_, _, r := read(t, "tags: []\nlimits: {wait: 2h}\nmod: fast\nwait: 3s\ntokens: [{from: 2026-01-01T00:00:00Z}]\n", []string{"HOOKONCE_MODE=quick"})
	want := []string{
		`f:1:1: tags is an empty list; write an element, such as ["blue"]`,
		`f:2:16: limits.wait: 2h is out of bounds; write a length of time from 1s to 1h`,
		`f:3:1: unknown key "mod"; did you mean "mode"?`,
		`f:4:1: unknown key "wait" here; it is "limits.wait"`,
		`f:5:11: tokens: this names no secret; write {secret: "env:NAME", from: 2026-01-01T00:00:00Z}`,
		`HOOKONCE_MODE: mode: "quick" is not known; write slow or fast`,
	}
	if diff := cmp.Diff(want, strings.Split(r.Err().Error(), "\n")); diff != "" {
		t.Error(diff)
	}
}

// What is shown has the origin of each setting, no default that does not count, and no secret.
func TestPrint(t *testing.T) {
	for file, want := range map[string]string{
		"":                           "addr: 127.0.0.1:80                         # default\nmode: slow                                 # default\nlimits:\n  wait: 5s                                 # default\n",
		"mode: fast\ntoken: hunter2": "addr: 127.0.0.1:80                         # default\nmode: fast                                 # f:1:1\ntoken: \"****\"                              # f:2:1\n",
		"mode: fast\ntags: blue":     "addr: 127.0.0.1:80                         # default\nmode: fast                                 # f:1:1\ntags: [blue]                               # f:2:1\n",
	} {
		s, origin, r := read(t, file, nil)
		p := new(Printer)
		Print(p, s, table, origin)
		if diff := cmp.Diff(want, p.String()); diff != "" || !r.Clean() {
			t.Errorf("%q: %s, %v", file, diff, r.Err())
		}
	}
}

// A change goes by what holds; of secrets it is only said that they changed.
func TestDiffer(t *testing.T) {
	before, was, _ := read(t, "token: hunter2\ntags: [a, b]", nil)
	after, is, _ := read(t, "addr: 127.0.0.1:81\nmode: slow\ntoken: hunter3\ntags: [a]", nil)
	want := []Change{
		{"addr", "addr changed (127.0.0.1:80 → 127.0.0.1:81)", true},
		{"tags", "tags changed (2 → 1)", false},
		{"token", "token changed", false},
	}
	if diff := cmp.Diff(want, Differ(before, after, table, was, is)); diff != "" {
		t.Error(diff)
	}
}

// Variables of others pass, those that a secret names too; what is one letter off does not.
func TestWarnUnknown(t *testing.T) {
	r := new(Report)
	WarnUnknown(r, []string{"HOOKONCE_ADR=x", "HOOKONCE_MODES=x", "HOOKONCE_SERVICE_HOST=x", "ADR=x", "HOOKONCE_MODE=fast"}, table.Variables(),
		func(name string) bool { return name == "HOOKONCE_MODES" })
	if diff := cmp.Diff([]string{"HOOKONCE_ADR: this is not a setting; did you mean HOOKONCE_ADDR?"}, r.Warnings()); diff != "" {
		t.Error(diff)
	}
}

// A reference is read where it points, and an error about it names that place and not the secret.
func TestResolver(t *testing.T) {
	e := Resolver{Environ: []string{"TOKEN=hunter2", "EMPTY="}, ReadFile: func(name string) ([]byte, error) {
		if name == "token.txt" {
			return []byte("hunter2\r\n"), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}}
	for reference, want := range map[string]string{
		"env:TOKEN": "hunter2", "file:token.txt": "hunter2", "hunter2": "hunter2",
		"env:EMPTY": "the environment variable EMPTY is empty; set it to the secret",
		"env:GONE":  "the environment variable GONE is not set; set it to the secret",
		"file:gone": "the file gone does not exist; create it with the secret in it",
		"ENV:TOKEN": "a reference begins with lower-case letters; write env: and what follows",
		"$TOKEN":    "this looks like a variable of a shell, and those are not expanded here; write env:NAME, or file:PATH if it is the secret itself",
	} {
		s, err := e.Secret(reference)
		got := s.Reveal()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", reference, got, want)
		}
		if printed := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); strings.Contains(printed, "hunter2") {
			t.Errorf("%s prints as %s", reference, printed)
		}
	}
}

// Every kind shows what it was set to in a form that it takes again, and refuses what is not good for it.
func TestKinds(t *testing.T) {
	var (
		text   string
		n      int
		bytes  int64
		rate   float64
		wait   time.Duration
		at     time.Time
		nets   []netip.Prefix
		ports  []int
		truth  bool
		accept = func(int) error { return nil }
	)
	for _, c := range []struct {
		name      string
		value     Value
		good, bad []string
	}{
		{"text", Text(&text, nil), []string{"a b", ""}, nil},
		{"bool", Bool(&truth), []string{"true", "false"}, []string{"yes", "True", ""}},
		{"count", Count(&n, 1, 10), []string{"1", "10"}, []string{"0", "11", "1.5", ""}},
		{"size", Size(&bytes, 1, 1<<30), []string{"1", "3KiB", "1GiB"}, []string{"0", "2GiB", "-1", "1TB"}},
		{"rate", Rate(&rate, 0.5, 10), []string{"0.5", "10"}, []string{"0.4", "11", "NaN"}},
		{"duration", Duration(&wait, 0, 400*Day), []string{"0s", "90d", "1d12h", "1m30s"}, []string{"401d", "1d25h", "-1s", "5"}},
		{"time", Time(&at), []string{"2026-11-01T00:00:00Z"}, []string{"2026-11-01", "0001-01-01T00:00:00Z"}},
		{"address", Address(&text), []string{":0", "127.0.0.1:80"}, []string{"80", "h:http", "h:080", "h:65536"}},
		{"url", URL(&text), []string{"https://h/x"}, []string{"h/x", "ftp://h/", "http://h/#x"}},
		{"networks", Networks(&nets), []string{"192.0.2.0/24", "2001:db8::/32"}, []string{"192.0.2.1/24", "h", "::ffff:0:0/64"}},
		{"numbers", Numbers(&ports, "443", accept), []string{"443"}, []string{"x"}},
	} {
		for _, s := range c.good {
			if many, ok := c.value.(List); ok {
				many.Clear()
			}
			if err := c.value.Set(s); err != nil || c.value.Show() != s {
				t.Errorf("%s: %q shows as %q, %v", c.name, s, c.value.Show(), err)
			}
		}
		before := c.value.Show()
		for _, s := range c.bad {
			if err := c.value.Set(s); err == nil || c.value.Show() != before {
				t.Errorf("%s: %q is taken, or changes the value: %v", c.name, s, err)
			}
		}
	}
}

// Settings of a part are settings of the whole, with what is different there.
func TestNest(t *testing.T) {
	type pair struct{ A, B server }
	nested := Nest(table, func(p *pair) *server { return &p.B }, func(f *Field[pair]) { f.Key, f.Default = "b."+f.Key, "" })
	p := new(pair)
	nested.Reset(p)
	f, ok := nested.Find("b.mode")
	if !ok || f.EnvName() != "HOOKONCE_B_MODE" || f.Bind(p).Set("fast") != nil || p.B.Mode != "fast" || p.B.Addr != "" || p.A.Mode != "" {
		t.Errorf("%+v, %v", f, ok)
	}
}
