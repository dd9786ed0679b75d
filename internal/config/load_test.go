package config

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the messages under testdata anew")

// environ is the environment of the files under testdata.
var environ = []string{"STRIPE=whsec_c2VjcmV0LWZvci10ZXN0cy0x", "SHORT=whsec_test", "EMPTY=", "HOOKONCE_HEX=00ff00ff00ff00ff", "ADMIN=a-token-that-is-long-enough"}

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
	out := cfg.Show()
	for _, w := range cfg.Warnings {
		out += "warning: " + w + "\n"
	}
	return out
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
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

func TestProblemsIsTheError(t *testing.T) {
	_, err := Load(Input{Path: "hookonce.yaml", Data: []byte("listn: x\nadmin: y\n")})
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 2 {
		t.Fatalf("err = %v, want both problems", err)
	}
}
