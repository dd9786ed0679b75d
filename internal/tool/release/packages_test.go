package release

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// built has what scripts/release built of two commits, in the folders old and new.
var built = flag.String("built", "", "`folder` with what make packages built")

// one returns the only file of the release that matches.
func one(t *testing.T, pattern string) string {
	t.Helper()
	if *built == "" {
		t.Fatal("run make packages")
	}
	names, err := filepath.Glob(filepath.Join(*built, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %v %v", pattern, names, err)
	}
	return names[0]
}

// shop is the application behind the gateway. Every third event fails at first, so that some wait for their next
// attempt whenever one looks.
type shop struct {
	mu     sync.Mutex
	failed map[string]bool
	booked map[string]int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Hookonce-Key")
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum := sha256.Sum256([]byte(key)); sum[0]%3 == 0 && !s.failed[key] {
		s.failed[key] = true
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	}
	s.booked[key]++
}

func (s *shop) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.booked)
}

// provider sends events as Standard Webhooks say, and again until they are acknowledged.
type provider struct {
	client *http.Client
	secret []byte
}

func (p provider) send(id string) error {
	body := fmt.Sprintf(`{"type":"order.paid","timestamp":"2026-01-01T12:00:00Z","data":{"order":%q}}`, id)
	at := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, p.secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:8080/in/first", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}

func (p provider) insist(id string) (refused int, err error) {
	for deadline := time.Now().Add(patience); ; refused++ {
		if err = p.send(id); err == nil || time.Now().After(deadline) {
			return refused, err
		}
		time.Sleep(50 * time.Millisecond) // as a provider waits, if not as long
	}
}

// TestDebianPackage is the life of the deb on a machine: installed, tried, configured, upgraded under load, removed, come
// back, purged.
func TestDebianPackage(t *testing.T) {
	m := boot(t)
	old, latest := m.brings(t, one(t, "old/*_amd64.deb")), m.brings(t, one(t, "new/*_amd64.deb"))

	began := time.Now()
	t.Log(m.run(t, "dpkg", "--install", old))
	m.run(t, "systemctl", "is-active", "hookonce")
	m.run(t, "systemctl", "is-enabled", "hookonce")
	m.run(t, "hookonce", "doctor", "--config", "/etc/hookonce/hookonce.yaml")
	const signed = "--secret=file:/etc/hookonce/secrets/first"
	m.run(t, "hookonce", "send", "http://127.0.0.1:8080/in/first", signed)
	for name, want := range map[string]string{
		"/etc/hookonce": "750 root:hookonce", "/etc/hookonce/hookonce.yaml": "640 root:hookonce",
		"/etc/hookonce/secrets/first": "640 root:hookonce", "/var/lib/hookonce": "750 hookonce:hookonce",
		"/var/lib/hookonce/hookonce.db": "600 hookonce:hookonce",
	} {
		if got := strings.TrimSpace(m.run(t, "stat", "--format=%a %U:%G", name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}

	config := m.root + "/etc/hookonce/hookonce.yaml"
	first, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	edit(string(first) + "nonsense: 1\n")
	if out, err := m.try("systemctl", "reload", "hookonce"); err == nil {
		t.Errorf("a faulty configuration was read: %s", out)
	}
	m.run(t, "systemctl", "is-active", "hookonce")
	own := strings.Replace(string(first), "# to: ", "to: ", 1)
	edit(own)
	m.run(t, "systemctl", "reload", "hookonce")

	app := &shop{failed: map[string]bool{}, booked: map[string]int{}}
	server := &http.Server{Handler: app}
	go func() { _ = server.Serve(m.listen(t, "127.0.0.1:3000")) }()
	defer server.Close()
	p := provider{client: m.client(), secret: secretOf(t, m)}
	eventually(t, "events are delivered where the new configuration says", func() bool {
		id := fmt.Sprintf("after_reload_%d", time.Now().UnixNano())
		return p.send(id) == nil && app.count() > 0
	})
	t.Logf("%v from dpkg to an event in the application, with all that was looked at meanwhile", time.Since(began).Round(time.Millisecond))

	// The upgrade, while four senders send.
	before := strings.TrimSpace(m.run(t, "systemctl", "show", "--property=MainPID", "hookonce"))
	was := app.count()
	sent := make(chan string)
	upgraded := make(chan struct{})
	var refused sync.Map
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("order_%d_%d", s, i)
				again, err := p.insist(id)
				if err != nil {
					t.Errorf("%s was never acknowledged: %v", id, err)
				}
				refused.Store(id, again)
				sent <- id
				select {
				case <-upgraded:
					return
				default:
				}
			}
		})
	}
	go func() { senders.Wait(); close(sent) }()
	all := map[string]bool{}
	for len(all) < 300 {
		all[<-sent] = true
	}
	go func() {
		defer close(upgraded)
		t.Log(m.run(t, "dpkg", "--force-confold", "--install", latest))
	}()
	for id := range sent {
		all[id] = true
	}
	waited := 0
	refused.Range(func(_, n any) bool {
		if n.(int) > 0 {
			waited++
		}
		return true
	})
	waiting := len(all) + was - app.count()
	t.Logf("%d events, %d of them refused at first during the restart and sent again, %d not delivered when the upgrade ended", len(all), waited, waiting)
	if after := strings.TrimSpace(m.run(t, "systemctl", "show", "--property=MainPID", "hookonce")); after == before {
		t.Errorf("the old program still runs: %s", after)
	}
	if waiting == 0 {
		t.Error("nothing was in flight")
	}
	eventually(t, "all events are delivered", func() bool {
		app.mu.Lock()
		defer app.mu.Unlock()
		for id := range all {
			if app.booked[id] == 0 {
				return false
			}
		}
		return true
	})
	check := func(id string) {
		t.Helper()
		app.mu.Lock()
		defer app.mu.Unlock()
		if n := app.booked[id]; n != 1 {
			t.Errorf("%s was booked %d times", id, n)
		}
	}
	for id := range all {
		check(id)
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != own {
		t.Errorf("the upgrade changed the configuration: %v", err)
	}
	if got, want := m.run(t, "hookonce", "version"), command(t, one(t, "new/bin/linux_amd64/hookonce"), "version"); got != want {
		t.Errorf("runs\n%s, want\n%s", got, want)
	}

	// Removed and installed again, it knows what came before.
	m.run(t, "dpkg", "--remove", "hookonce")
	if out, err := m.try("systemctl", "is-active", "hookonce"); err == nil {
		t.Errorf("it runs after its removal: %s", out)
	}
	m.run(t, "test", "-s", "/var/lib/hookonce/hookonce.db")
	m.run(t, "test", "-s", "/etc/hookonce/secrets/first")
	m.run(t, "dpkg", "--install", latest)
	if err := p.send("order_0_0"); err != nil {
		t.Error(err)
	}
	if _, err := p.insist("order_after"); err != nil {
		t.Error(err)
	}
	eventually(t, "the next event is delivered", func() bool {
		app.mu.Lock()
		defer app.mu.Unlock()
		return app.booked["order_after"] > 0
	})
	check("order_0_0")

	m.run(t, "dpkg", "--purge", "hookonce")
	for _, gone := range []string{"/etc/hookonce", "/var/lib/hookonce", "/usr/bin/hookonce", "/etc/systemd/system/multi-user.target.wants/hookonce.service"} {
		if out, err := m.try("test", "!", "-e", gone, "-a", "!", "-L", gone); err != nil {
			t.Errorf("%s is there after a purge %s", gone, out)
		}
	}
}

func secretOf(t *testing.T, m *machine) []byte {
	t.Helper()
	text, err := os.ReadFile(m.root + "/etc/hookonce/secrets/first")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestRPM: Debian's rpm installs, upgrades and removes it in a root, where no systemd runs.
func TestRPM(t *testing.T) {
	root := debian(t)
	rpm := func(words ...string) string {
		t.Helper()
		// The root is a Debian: what the package depends on is there, and rpm does not know it.
		return command(t, append([]string{"rpm", "--root", root, "--dbpath", "/var/lib/rpm", "--nodeps"}, words...)...)
	}
	old, latest := one(t, "old/*.x86_64.rpm"), one(t, "new/*.x86_64.rpm")
	if got := command(t, "rpm", "-qp", "--requires", latest); !strings.Contains(got, "ca-certificates") || !strings.Contains(got, "/usr/sbin/useradd") {
		t.Errorf("it requires %s", got)
	}
	t.Log(rpm("--install", old))
	config := root + "/etc/hookonce/hookonce.yaml"
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(text), "# to: ", "to: ", 1)
	if err := os.WriteFile(config, []byte(own), 0o640); err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(root + "/etc/hookonce/secrets/first")
	if err != nil || len(secret) < 40 {
		t.Fatalf("no secret was made: %v", err)
	}
	t.Log(rpm("--upgrade", "--oldpackage", latest))
	if text, err := os.ReadFile(config); err != nil || string(text) != own {
		t.Errorf("the upgrade changed the configuration: %v", err)
	}
	if again, err := os.ReadFile(root + "/etc/hookonce/secrets/first"); err != nil || string(again) != string(secret) {
		t.Errorf("the upgrade changed the secret: %v", err)
	}
	if got := command(t, "chroot", root, "stat", "--format=%a %U:%G", "/etc/hookonce/hookonce.yaml", "/etc/hookonce/secrets", "/etc/hookonce/secrets/first"); got != "640 root:hookonce\n750 root:hookonce\n640 root:hookonce\n" {
		t.Errorf("files belong to\n%s", got)
	}
	command(t, "chroot", root, "setpriv", "--reuid=hookonce", "--regid=hookonce", "--clear-groups", "hookonce", "config", "check", "--config", "/etc/hookonce/hookonce.yaml")
	data := root + "/var/lib/hookonce"
	if err := os.Mkdir(data, 0o750); err != nil {
		t.Fatal(err)
	}
	t.Log(rpm("--erase", "hookonce"))
	for _, kept := range []string{data, config + ".rpmsave", root + "/etc/hookonce/secrets/first"} {
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("the removal did not keep %v", err)
		}
	}
	if _, err := os.Stat(root + "/usr/bin/hookonce"); err == nil {
		t.Error("the program is there after its removal")
	}
}

// TestChecksums: Debian's minisign and sha256sum accept what was signed.
func TestChecksums(t *testing.T) {
	sums := one(t, "new/SHA256SUMS")
	command(t, "minisign", "-V", "-p", one(t, "key.pub"), "-m", sums)
	command(t, "env", "-C", filepath.Dir(sums), "sha256sum", "--check", "--strict", "SHA256SUMS")
}
