package endtoend

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// proxies are those of docs/deploy.md, each with its file in deploy as it stands but for addresses,
// certificates, and how often Caddy looks whether a gateway is ready.
var proxies = map[string]func(t *testing.T, p *proxy) *exec.Cmd{
	"nginx": func(t *testing.T, p *proxy) *exec.Cmd {
		var servers strings.Builder
		for _, g := range p.gateways {
			fmt.Fprintf(&servers, "server %s max_fails=0;", g)
		}
		site := rewrite(t, "../../../../deploy/nginx/hookonce.conf",
			"server 127.0.0.1:8080 max_fails=0;", servers.String(),
			"listen 443 ssl;", "listen "+p.addr+" ssl;",
			"/etc/ssl/hooks.example.com.pem", p.cert, "/etc/ssl/hooks.example.com.key", p.key)
		// Its workers are who the test is: they must reach its folder. Who is not root is told that this means nothing.
		main := fmt.Sprintf("user root; daemon off; pid %[1]s/pid; error_log stderr; events {} http { access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n%[2]s}",
			p.dir, site)
		return exec.Command(mustProgram(t, "nginx", "/usr/sbin/nginx", "nginx"), "-e", "stderr", "-p", p.dir, "-c", p.write(t, "nginx.conf", main))
	},
	"caddy": func(t *testing.T, p *proxy) *exec.Cmd {
		_, admin, err := net.SplitHostPort(p.admin)
		if err != nil {
			t.Fatal(err)
		}
		site := rewrite(t, "../../../../deploy/caddy/Caddyfile",
			"hooks.example.com {", "https://"+p.addr+" {\ntls "+p.cert+" "+p.key,
			"reverse_proxy 127.0.0.1:8080 {", "reverse_proxy "+strings.Join(p.gateways, " ")+" {",
			"health_port 8081", "health_port "+admin, "health_interval 2s", "health_interval 100ms")
		c := exec.Command(mustProgram(t, "Caddy", "caddy"), "run", "--adapter", "caddyfile", "--config", p.write(t, "Caddyfile", "{\nadmin off\nauto_https off\ndefault_sni localhost\n}\n"+site))
		c.Env = append(os.Environ(), "HOME="+p.dir, "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
		return c
	},
}

// sender is the address that requests come from: another than the proxy's.
const sender = "127.0.0.2"

// proxy is a server that ends TLS in front of gateways.
type proxy struct {
	dir, addr, cert, key string
	gateways             []string // where they listen
	admin                string   // of the first, on a port that all have
	client               *http.Client
	log                  *transcript
}

// startProxy starts the named one and returns when it answers.
func startProxy(t *testing.T, name string, p *proxy) {
	t.Helper()
	p.dir = t.TempDir()
	p.cert, p.key = certificate(t, p.dir)
	port, err := throwaway.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	cmd := proxies[name](t, p)
	p.log = new(transcript)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, // the certificate is this test's
		DialContext:         (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(sender)}}).DialContext,
		MaxIdleConnsPerHost: 16,
	}
	t.Cleanup(transport.CloseIdleConnections)
	p.client = &http.Client{Transport: transport, Timeout: patience}
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		conn, err := net.Dial("tcp", p.addr)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v\n%s", name, err, p.log)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v\n%s", name, err, p.log)
		}
	}
}

func (p *proxy) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rewrite returns a file in which texts are replaced that all must be there.
func rewrite(t *testing.T, path string, oldNew ...string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(oldNew); i += 2 {
		if !bytes.Contains(b, []byte(oldNew[i])) {
			t.Fatalf("%s has no %q", path, oldNew[i])
		}
	}
	return strings.NewReplacer(oldNew...).Replace(string(b))
}

func mustProgram(t *testing.T, what string, candidates ...string) string {
	t.Helper()
	path, err := throwaway.Program(what, candidates...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate writes one that is made for this test.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	defer srv.Close()
	own := srv.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: own.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

const proxySecret = "whsec_a-fake-secret-of-a-proxied-shop"

const proxyConfig = `
listen: %s
admin: %s
store: "%s"
trusted_proxies: [127.0.0.1]
sources:
  - {name: billing, provider: stripe, secrets: [` + proxySecret + `], to: "%s", max_body: 2MiB}
`

// proxied starts a gateway as the page says, which stores in the given place and delivers to the app.
func proxied(t *testing.T, listen, admin, store, app string) *process {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, proxyConfig, listen, admin, store, app), 0o600); err != nil {
		t.Fatal(err)
	}
	return mustLaunch(t, dir, "serve", "--config", file)
}

// signed is a request of Stripe with a body that is padded to the given size.
func signed(t *testing.T, id string, size int) *hookonce.Request {
	t.Helper()
	stripe, _ := provider.Lookup("stripe")
	p, err := spec.New(stripe, spec.Settings{Secrets: spec.Secrets(proxySecret)})
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Appendf(nil, `{"id":"%s","object":"event","type":"invoice.paid","data":{"object":{"id":"in_1"}},"pad":"`, id)
	body = append(append(body, bytes.Repeat([]byte("x"), max(0, size-len(body)-2))...), `"}`...)
	req := &hookonce.Request{Method: http.MethodPost, Now: time.Now(), Body: body}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// post sends a request through the proxy, as a stranger who lies about where it came from.
func (p *proxy) post(req *hookonce.Request) (status int, text string, err error) {
	r, err := http.NewRequest(http.MethodPost, "https://"+p.addr+"/in/billing", bytes.NewReader(req.Body))
	if err != nil {
		return 0, "", err
	}
	r.Header = req.Header.Clone()
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	res, err := p.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// mustTake posts an event that nothing may refuse, and again where a gateway says that the database
// of a busy machine took longer than a sender waits for it.
func (p *proxy) mustTake(t *testing.T, id string) {
	t.Helper()
	began := time.Now()
	status, text, err := p.post(signed(t, id, 0))
	for err == nil && status == http.StatusServiceUnavailable && strings.Contains(text, "urn:") && time.Since(began) >= 5*time.Second && time.Since(began) < patience {
		status, text, err = p.post(signed(t, id, 0))
	}
	if status != http.StatusOK || err != nil {
		t.Errorf("%s was answered %d: %s (%v)", id, status, text, err)
	}
}

// A gateway behind a proxy of the page sees signatures, sizes and addresses as its senders made them: a large genuine event
// gets through byte by byte, what is too large is refused by the gateway and on record there, and nobody passes himself off
// as another address.
func TestBehindProxies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs nginx and Caddy")
	}
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan int64, 4)
			app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				n, _ := io.Copy(io.Discard, r.Body)
				got <- n
			}))
			defer app.Close()
			gateway := proxied(t, "127.0.0.1:0", "127.0.0.1:0", "sqlite:"+filepath.Join(t.TempDir(), "hookonce.db"), app.URL)
			p := &proxy{gateways: []string{gateway.addr}, admin: gateway.admin}
			startProxy(t, name, p)

			const large = 3 << 19 // more than nginx takes unless it is told
			if status, text, err := p.post(signed(t, "evt_large", large)); status != http.StatusOK || err != nil {
				t.Errorf("a genuine event was answered %d: %s (%v)", status, text, err)
			}
			select {
			case n := <-got:
				if n != large {
					t.Errorf("%d bytes arrived", n)
				}
			case <-time.After(patience):
				t.Error("nothing arrived")
			}

			if status, text, err := p.post(signed(t, "evt_huge", 3<<20)); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "urn:") {
				t.Errorf("what is too large was answered %d: %s (%v)", status, text, err)
			}
			forged := signed(t, "evt_forged", 0)
			forged.Body = append(forged.Body, ' ')
			if status, _, err := p.post(forged); status != http.StatusUnauthorized || err != nil {
				t.Errorf("a forged event was answered %d (%v)", status, err)
			}
			// Its log is whole when it has ended.
			if err := gateway.end(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			var refused []string
			for _, m := range regexp.MustCompile(`msg="request rejected".* status=(\d+).*`).FindAllStringSubmatch(gateway.log.String(), -1) {
				refused = append(refused, m[1])
				if !strings.Contains(m[0], "address="+sender) || strings.Contains(m[0], "203.0.113.7") {
					t.Errorf("the gateway believed another address: %s", m[0])
				}
			}
			if strings.Join(refused, " ") != "413 401" {
				t.Errorf("the gateway refused %v", refused)
			}
		})
	}
}

// Of two gateways behind Caddy, on two addresses of one machine, the second is asked when Caddy has
// noticed that the first is gone: it looks at each by itself.
func TestSecondGatewayBehindCaddy(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("needs Caddy and PostgreSQL")
	}
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	dsn := pgtest.DSN(t)
	admin, err := throwaway.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	var gateways []*process
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		gateways = append(gateways, proxied(t, host+":0", fmt.Sprint(host, ":", admin), dsn, app.URL))
	}
	p := &proxy{gateways: []string{gateways[0].addr, gateways[1].addr}, admin: gateways[0].admin}
	startProxy(t, "caddy", p)
	p.mustTake(t, "evt_of_both")
	if err := gateways[0].end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	noticed := regexp.MustCompile(`HTTP request failed.*` + regexp.QuoteMeta(gateways[0].admin))
	await(t, func() bool { return len(noticed.FindAllString(p.log.String(), 3)) == 3 })
	p.mustTake(t, "evt_of_the_second")
}

// Of two gateways behind nginx one after the other is replaced while events come: no sender is refused, and each event takes
// effect once, although nginx gives what one gateway did not answer to the other.
func TestRollingUpgradeRefusesNobody(t *testing.T) {
	testskip.Long(t)
	if testing.Short() {
		t.Skip("needs nginx and PostgreSQL")
	}
	var mu sync.Mutex
	effects := map[string]int{}
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		effects[r.Header.Get("Idempotency-Key")]++
	}))
	defer app.Close()
	dsn := pgtest.DSN(t)
	var gateways []*process
	for range 2 {
		port, err := throwaway.FreePort() // which nobody is given while the gateway is replaced
		if err != nil {
			t.Fatal(err)
		}
		gateways = append(gateways, proxied(t, fmt.Sprint("127.0.0.1:", port), "127.0.0.1:0", dsn, app.URL))
	}
	p := &proxy{gateways: []string{gateways[0].addr, gateways[1].addr}}
	startProxy(t, "nginx", p)

	var senders sync.WaitGroup
	var sent atomic.Int64
	stop := make(chan struct{})
	for worker := range 4 {
		senders.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				p.mustTake(t, fmt.Sprintf("evt_%d_%d", worker, n))
				sent.Add(1)
			}
		})
	}
	more := func() { // events, before anything else happens
		for enough := sent.Load() + 50; sent.Load() < enough && !t.Failed(); time.Sleep(time.Millisecond) {
		}
	}
	more()
	for i, g := range gateways {
		if err := g.end(syscall.SIGTERM); err != nil {
			t.Errorf("gateway %d: %v", i, err)
		}
		more()
		gateways[i] = proxied(t, g.addr, "127.0.0.1:0", dsn, app.URL)
		more()
	}
	close(stop)
	senders.Wait()
	await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(effects) == int(sent.Load())
	})
	mu.Lock()
	defer mu.Unlock()
	for key, times := range effects {
		if times != 1 {
			t.Errorf("%s took effect %d times", key, times)
		}
	}
	t.Logf("%d events while two gateways were replaced", sent.Load())
}

// await waits for what happens in the background.
func await(t *testing.T, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !happened(); time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen within %v", patience)
		}
	}
}
