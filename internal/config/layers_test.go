package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/settings"
)

const oneSource = `
listen: 127.0.0.1:1
sources:
  - name: billing
    provider: stripe
    secrets: ["env:STRIPE"]
    to: http://127.0.0.1:3000/
`

// publicSource delivers to where every policy allows it.
const publicSource = `
listen: 127.0.0.1:1
sources:
  - name: billing
    provider: stripe
    secrets: ["env:STRIPE"]
    to: https://app.example/
`

// input puts a configuration together from all layers. Without a file, path is empty.
func input(t *testing.T, file string, environ []string, args ...string) Input {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	in := Input{Environ: append([]string{"STRIPE=whsec_test", "NEW=whsec_new"}, environ...), Flags: fs, ReadFile: readFile}
	if file != "" {
		in.Path, in.Data = "hookonce.yaml", []byte(file)
	}
	return in
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name    string
		file    string
		environ []string
		args    []string
		want    string
	}{
		{"default", "", nil, nil, "127.0.0.1:8080"},
		{"file over default", oneSource, nil, nil, "127.0.0.1:1"},
		{"environment over file", oneSource, []string{"HOOKONCE_LISTEN=127.0.0.1:2"}, nil, "127.0.0.1:2"},
		{"last of two variables", "", []string{"HOOKONCE_LISTEN=127.0.0.1:2", "HOOKONCE_LISTEN=127.0.0.1:4"}, nil, "127.0.0.1:4"},
		{"flag over environment", oneSource, []string{"HOOKONCE_LISTEN=127.0.0.1:2"}, []string{"--listen", "127.0.0.1:3"}, "127.0.0.1:3"},
		{"flag over file", oneSource, nil, []string{"--listen=127.0.0.1:3"}, "127.0.0.1:3"},
		{"a flag that repeats the default", oneSource, nil, []string{"--listen=127.0.0.1:8080"}, "127.0.0.1:8080"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Load(input(t, c.file, c.environ, c.args...))
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Listen != c.want {
				t.Errorf("listen = %s, want %s", cfg.Listen, c.want)
			}
		})
	}
}

// TestEverySettingHasThreeNames sets each setting once through the file, the environment and a flag,
// and finds it where it belongs.
func TestEverySettingHasThreeNames(t *testing.T) {
	for _, f := range configTable {
		example := another(t, configTable, f)
		inFile := example
		if _, many := f.Bind(new(Config)).(settings.List); many {
			inFile = `["` + example + `"]`
		}
		for layer, in := range map[string]Input{
			"file":        input(t, nested(f.Key, inFile)+publicSource[len("\nlisten: 127.0.0.1:1"):], nil),
			"environment": input(t, "", []string{f.EnvName() + "=" + example}),
			"flag":        input(t, "", nil, "--"+f.FlagName()+"="+example),
		} {
			cfg := Outline(in) // alone, it may not make sense with the others
			if got := f.Bind(cfg).Show(); got != example {
				t.Errorf("%s from %s = %s, want %s", f.Key, layer, got, example)
			}
		}
	}
}

// A variable that commands read for themselves is no setting's: who sets it for the commands would change the gateway.
func TestVariablesOfCommandsAreNoSettings(t *testing.T) {
	for _, v := range slices.Concat(configTable.Variables(), sourceTable.Variables()) {
		if slices.Contains(commandVariables, v) {
			t.Errorf("%s is a setting's, too", v)
		}
	}
}

// nested writes a.b: v as a group.
func nested(key, text string) string {
	if outer, inner, ok := strings.Cut(key, "."); ok {
		return fmt.Sprintf("%s: {%s: %s}", outer, inner, text)
	}
	return key + ": " + text
}

func TestSourceFromFlagsAndEnvironment(t *testing.T) {
	for _, c := range []struct {
		name    string
		file    string
		environ []string
		args    []string
		want    []string // name provider secrets to
	}{
		{"flags alone", "", nil,
			[]string{"--source", "a", "--provider", "stripe", "--secret", "env:NEW", "--secret", "file:/run/secrets/good", "--to", "http://h/"},
			[]string{"a stripe whsec_new,from a file http://h/"}},
		{"environment alone", "",
			[]string{"HOOKONCE_SOURCE=a", "HOOKONCE_PROVIDER=stripe", "HOOKONCE_SECRET=env:NEW a-literal", "HOOKONCE_TO=http://h/"}, nil,
			[]string{"a stripe whsec_new,a-literal http://h/"}},
		{"beside the file", oneSource, nil,
			[]string{"--source", "a", "--provider", "github", "--secret", "env:NEW", "--to", "http://h/"},
			[]string{"billing stripe whsec_test http://127.0.0.1:3000/", "a github whsec_new http://h/"}},
		{"over the file", oneSource, []string{"HOOKONCE_TO=http://env/"},
			[]string{"--source", "billing", "--secret", "env:NEW"},
			[]string{"billing stripe whsec_new http://env/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Load(input(t, c.file, c.environ, c.args...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range cfg.Sources {
				var revealed []string
				for _, secret := range s.Secrets {
					revealed = append(revealed, secret.Reveal())
				}
				got = append(got, strings.Join([]string{s.Name, s.Provider, strings.Join(revealed, ","), s.To}, " "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHandshakesFromFlagsAndEnvironment(t *testing.T) {
	for name, in := range map[string]Input{
		"flags": input(t, "", nil, "--source", "a", "--provider", "slack", "--secret", "env:NEW", "--to", "http://h/",
			"--handshakes", "--token", "env:STRIPE"),
		"environment": input(t, "", []string{"HOOKONCE_SOURCE=a", "HOOKONCE_PROVIDER=slack", "HOOKONCE_SECRET=env:NEW",
			"HOOKONCE_TO=http://h/", "HOOKONCE_HANDSHAKES=true", "HOOKONCE_TOKEN=env:STRIPE"}),
	} {
		cfg, err := Load(in)
		if err != nil {
			t.Fatal(name, err)
		}
		if s := cfg.Sources[0]; !s.Handshakes || s.Token.Reveal() != "whsec_test" {
			t.Errorf("from %s: handshakes %v, token %q", name, s.Handshakes, s.Token.Reveal())
		}
	}
}

// A provider gets what the source says about it, validity included.
func TestNewProviderRotates(t *testing.T) {
	cfg, err := Load(input(t, strings.Replace(oneSource, `["env:STRIPE"]`,
		`[{secret: "env:STRIPE", until: 2026-11-01T00:00:00Z}, {secret: "env:NEW", from: 2026-10-01T00:00:00Z}]`, 1), nil))
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Sources[0]
	p, err := s.NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		secret, at string
		number     int // 0: refused
	}{
		{"whsec_test", "2026-09-30T23:59:59Z", 1}, {"whsec_new", "2026-09-30T23:59:59Z", 0},
		{"whsec_test", "2026-10-15T00:00:00Z", 1}, {"whsec_new", "2026-10-15T00:00:00Z", 2},
		{"whsec_test", "2026-11-01T00:00:00Z", 0}, {"whsec_new", "2026-11-01T00:00:00Z", 2},
	} {
		now, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		alone := s
		alone.Secrets = []settings.Secret{settings.Literal(c.secret)}
		sender, err := alone.NewProvider()
		if err != nil {
			t.Fatal(err)
		}
		req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(`{"id":"evt_1"}`), Now: now}
		if err := sender.Sign(req); err != nil {
			t.Fatal(err)
		}
		d, err := p.Open(req)
		if got := err == nil; got != (c.number > 0) || got && d.Proof.Secret != c.number {
			t.Errorf("%s at %s: %+v, %v; want number %d", c.secret, c.at, d, err, c.number)
		}
	}
}

func TestFaultsNameTheirLayer(t *testing.T) {
	for _, c := range []struct {
		name    string
		file    string
		environ []string
		args    []string
		want    string
	}{
		{"a flag", "", nil, []string{"--listen", "x"}, `--listen: "x" is not an address; write host:port, such as 127.0.0.1:8080`},
		{"a variable", "", []string{"HOOKONCE_MIGRATE=1"}, nil, `HOOKONCE_MIGRATE: migrate: "1" is neither true nor false; write one of these`},
		{"an empty variable", "", []string{"HOOKONCE_STORE="}, nil,
			"HOOKONCE_STORE: store: this names no store; write sqlite:hookonce.db or postgres://user:password@host:5432/database"},
		{"a source without its name", oneSource, []string{"HOOKONCE_TO=http://h/"}, []string{"--provider", "stripe"},
			"HOOKONCE_TO: this describes a source, but not which of those in hookonce.yaml; add --source or HOOKONCE_SOURCE with its name, or with a new one\n" +
				"--provider: this describes a source, but not which of those in hookonce.yaml; add --source or HOOKONCE_SOURCE with its name, or with a new one"},
		{"a fault in the file that a flag overrides", strings.Replace(oneSource, "127.0.0.1:1", "x", 1), nil, []string{"--listen", "127.0.0.1:3"},
			`hookonce.yaml:2:9: listen: "x" is not an address; write host:port, such as 127.0.0.1:8080`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(input(t, c.file, c.environ, c.args...))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReplacedSecretNeedNotExist: a reference in the file that a flag replaces is not followed.
func TestReplacedSecretNeedNotExist(t *testing.T) {
	file := strings.Replace(oneSource, "env:STRIPE", "env:GONE", 1)
	if _, err := Load(input(t, file, nil, "--source=billing", "--secret=env:NEW")); err != nil {
		t.Error(err)
	}
}

func TestUnknownVariablesWarn(t *testing.T) {
	cfg, err := Load(input(t, "", []string{"HOOKONCE_LISTN=x", "HOOKONCE_SERVICE_HOST=10.0.0.1", "HOOKONCE_PORT=tcp://10.0.0.1:80"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"HOOKONCE_LISTN: this is not a setting; did you mean HOOKONCE_LISTEN?"}
	if diff := cmp.Diff(want, cfg.Warnings); diff != "" {
		t.Error(diff)
	}
}
