package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What packages install is in packaging. make packages installs them; the tests here are what can be known without.

const packaging = "../../packaging/"

// maxExposure is in tenths, as systemd-analyze counts. What is left is that the gateway has the network.
const maxExposure = "15"

func TestUnitIsHardened(t *testing.T) {
	if testing.Short() {
		t.Skip("systemd-analyze is among what scripts/install-servers installs")
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold="+maxExposure, "--no-pager", packaging+"hookonce.service").CombinedOutput()
	if err != nil {
		t.Errorf("exposure above %s tenths: %v\n%s", maxExposure, err, out)
	}
}

// TestUnitIsWellFormed: systemd knows every line of the unit, which otherwise is ignored with a word in a log.
func TestUnitIsWellFormed(t *testing.T) {
	if testing.Short() {
		t.Skip("systemd-analyze is among what scripts/install-servers installs")
	}
	program, err := os.Executable() // stands for the one that is not installed
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.ReplaceAll(read(t, packaging+"hookonce.service"), "/usr/bin/hookonce", program)
	name := filepath.Join(t.TempDir(), "hookonce.service")
	if err := os.WriteFile(name, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", name).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPackagedConfigurationStarts: a fresh installation has a configuration that serve takes, with the one secret that
// installing makes up, and on loopback only.
func TestPackagedConfigurationStarts(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "first")
	if err := os.WriteFile(secret, []byte("whsec_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := read(t, packaging+"hookonce.yaml")
	for _, want := range []string{"listen: 127.0.0.1:8080 ", "admin: 127.0.0.1:8081 ", "store: sqlite:/var/lib/hookonce/hookonce.db"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	text = strings.ReplaceAll(text, "/etc/hookonce/secrets", dir)
	text = strings.ReplaceAll(text, "/var/lib/hookonce", dir)
	file := filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var warned bytes.Buffer
	if code := execute(&env{args: []string{"hookonce", "config", "check", "--config", file}, out: io.Discard, err: &warned}); code != exitOK {
		t.Errorf("config check exits %d: %s", code, &warned)
	}
	if !strings.Contains(warned.String(), "write to: URL") {
		t.Errorf("it does not say what to do next: %q", &warned)
	}
}

// TestPackageHasItsFiles: what packaging/nfpm.yaml packs is there, all scripts are, and they are scripts.
func TestPackageHasItsFiles(t *testing.T) {
	type scripts struct{ Preinstall, Postinstall, Preremove, Postremove string }
	var p struct {
		Contents []struct{ Src, Dst, Type string }
		Override map[string]struct{ Scripts scripts } `yaml:"overrides"`
	}
	if err := yaml.Unmarshal([]byte(read(t, packaging+"nfpm.yaml")), &p); err != nil {
		t.Fatal(err)
	}
	packed := map[string]string{}
	for _, c := range p.Contents {
		packed[c.Dst] = c.Type
		if c.Src != "" && !strings.HasPrefix(c.Src, "${") { // the rest is built
			read(t, "../../"+c.Src)
		}
	}
	if packed["/etc/hookonce/hookonce.yaml"] != "config|noreplace" {
		t.Error("an upgrade would overwrite the configuration")
	}
	for _, format := range []string{"deb", "rpm"} {
		s := p.Override[format].Scripts
		for _, name := range []string{s.Preinstall, s.Postinstall, s.Preremove, s.Postremove} {
			if out, err := exec.Command("sh", "-n", "../../"+name).CombinedOutput(); err != nil {
				t.Errorf("%s: script %q: %v\n%s", format, name, err, out)
			}
		}
	}
	page := read(t, "../../docs/install.md")
	for path := range packed {
		if path != "/etc/hookonce" && strings.HasPrefix(path, "/etc/") && !strings.Contains(page, path) {
			t.Errorf("docs/install.md does not say what %s is for", path)
		}
	}
	unit := read(t, packaging+"hookonce.service")
	for _, path := range []string{"/usr/bin/hookonce", "/etc/hookonce/hookonce.yaml"} {
		if _, ok := packed[path]; !ok || !strings.Contains(unit, path) {
			t.Errorf("unit and package do not agree about %s", path)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
