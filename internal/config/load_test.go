package config

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/settings"
)

var update = flag.Bool("update", false, "write the messages under testdata anew")

// environ is the environment of the files under testdata.
var environ = []string{"STRIPE=whsec_c2VjcmV0LWZvci10ZXN0cy0x", "SHORT=whsec_test", "EMPTY=", "HOOKONCE_HEX=00ff00ff00ff00ff", "ADMIN=a-token-that-is-long-enough",
	"CHAT=slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", "HOOK=https://alerts.internal/hooks?token=hunter2", "BEAT=https://beats.internal/ping/hunter2", "NOWHERE=carrier-pigeon://hunter2"}

// today is when the files under testdata are read.
func today() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// readFile knows the files that testdata refers to.
func readFile(name string) ([]byte, error) {
	cert, key := testCertificate()
	switch name {
	case "/run/secrets/ca.pem", "/run/secrets/cert.pem":
		return cert, nil
	case "/run/secrets/key.pem":
		return key, nil
	case "/run/secrets/token":
		return []byte("0123456789abcdef0123456789abcdef\n"), nil
	case "/run/secrets/good":
		return []byte("from a file\n"), nil
	case "/run/secrets/empty":
		return []byte("\n"), nil
	case "/run/secrets/locked":
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// TestMessages holds every file under testdata to the messages beside it: faults for bad ones,
// the configuration as shown, with its warnings, for good ones.
func TestMessages(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files under testdata", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := outcome(Input{Path: "hookonce.yaml", Data: data, Environ: environ, ReadFile: readFile, Now: today})
			compare(t, strings.TrimSuffix(file, ".yaml")+".txt", got)
		})
	}
}

// outcome is what a person reads.
func outcome(in Input) string {
	cfg, err := Load(in)
	if err != nil {
		return err.Error() + "\n"
	}
	out := stated(cfg.Show())
	for _, w := range cfg.Warnings {
		out += "warning: " + w + "\n"
	}
	return out
}

// stated leaves out of a configuration what nobody wrote, so that a new setting with a default changes
// [TestDefaults] alone.
func stated(shown string) string {
	var kept []string
	for line := range strings.Lines(shown) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		for last := len(kept) - 1; last >= 0 && strings.HasSuffix(kept[last], ":\n") && indent <= strings.IndexFunc(kept[last], unicode.IsLetter); last-- {
			kept = kept[:last] // a group of which nothing is left
		}
		if _, from, _ := strings.Cut(line, " # "); from != "default\n" && !strings.HasPrefix(from, "delivery.") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// Every setting stands in one list with its default, its variable and its flag, where it has them, and
// what takes a restart.
func TestDefaults(t *testing.T) {
	var b strings.Builder
	defaults(&b, "settings", configTable, true)
	defaults(&b, "a destination", destinationTable, false)
	defaults(&b, "a source", sourceTable, true)
	defaults(&b, "a route", routeTable, false)
	defaults(&b, "an admin token", tokenTable, false)
	defaults(&b, "a channel", channelTable, false)
	compare(t, "testdata/defaults.txt", b.String())
}

func defaults[C any](b *strings.Builder, title string, table settings.Table[C], flags bool) {
	fmt.Fprintf(b, "%s:\n", title)
	for _, f := range table {
		line := fmt.Sprintf("  %-28s %-22s", f.Key, cmp.Or(f.Default, "-"))
		if flags {
			line += fmt.Sprintf(" --%-28s %s", f.FlagName(), f.EnvName())
		}
		if f.Restart {
			line += " (restart)"
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

func TestFaultsIsTheError(t *testing.T) {
	_, err := Load(Input{Path: "hookonce.yaml", Data: []byte("listn: x\nadmin: y\n")})
	var faults settings.Faults
	if !errors.As(err, &faults) || len(faults) != 2 {
		t.Fatalf("err = %v, want both faults", err)
	}
}
