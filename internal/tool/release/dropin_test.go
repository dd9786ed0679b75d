package release

import (
	"os"
	"strings"
	"testing"
)

// TestUnitTakesDropIns: what docs/install.md says of "systemctl edit" works under all that confines the unit.
func TestUnitTakesDropIns(t *testing.T) {
	m := boot(t)
	m.run(t, "dpkg", "--install", m.brings(t, one(t, "new/*_amd64.deb")))
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(m.root+name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	m.run(t, "mkdir", "/etc/systemd/system/hookonce.service.d")
	write("/root/billing", "whsec_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U=\n")
	write("/etc/systemd/system/hookonce.service.d/override.conf", `[Service]
LoadCredential=billing:/root/billing
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
PrivateUsers=no
`)
	config, err := os.ReadFile(m.root + "/etc/hookonce/hookonce.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(config), "127.0.0.1:8080", "127.0.0.1:80", 1)
	write("/etc/hookonce/hookonce.yaml", strings.ReplaceAll(text, "/etc/hookonce/secrets/first", "/run/credentials/hookonce.service/billing"))
	m.run(t, "systemctl", "daemon-reload")
	m.run(t, "systemctl", "restart", "hookonce")
	m.run(t, "hookonce", "send", "http://127.0.0.1/in/first", "--secret", "file:/root/billing")
}
