package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

// With a certificate the admin listener speaks HTTPS: people log in, and get a cookie that is sent over TLS alone. A reload
// takes new certificates, for connections from then on; to end TLS takes a restart.
func TestAdminTLS(t *testing.T) {
	t.Parallel()
	cert, key := selfSigned(t)
	read := func(name string) ([]byte, error) {
		return map[string][]byte{"cert.pem": cert, "key.pem": key, "token": []byte("a-fake-token-for-operators")}[name], nil
	}
	const file = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: sqlite:%s
%s
admin_tokens: [{name: oncall, token: "file:token", role: operator}]
sources: [{name: orders, provider: hmac, secrets: ["literal-secret-of-orders"], to: "http://127.0.0.1:1/"}]
`
	store, pair := sqliteStore(t).DSN, "admin_tls: {cert: cert.pem, key: key.pem}"
	parse := func(pair string) (*config.Config, error) {
		return config.Load(config.Input{Path: "hookonce.yaml", Data: fmt.Appendf(nil, file, store, pair), ReadFile: read})
	}
	cfg, err := parse(pair)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Start(t.Context(), cfg, Options{Load: func() (*config.Config, error) { return parse(pair) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	var shown []byte
	c := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			shown = raw[0]
			return nil
		}}},
	}
	login := func() *http.Response {
		t.Helper()
		res, err := c.PostForm("https://"+g.AdminAddr().String()+"/login", url.Values{"token": {"a-fake-token-for-operators"}})
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res
	}
	res := login()
	if cookie := res.Header.Get("Set-Cookie"); res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(cookie, "__Host-hookonce=oncall|operator|") || !strings.Contains(cookie, "Secure") {
		t.Errorf("login: %d with the cookie %q", res.StatusCode, cookie)
	}
	before := shown
	cert, key = selfSigned(t)
	if _, err := g.Reload(t.Context(), "a test"); err != nil {
		t.Fatal(err)
	}
	if login(); string(shown) == string(before) {
		t.Error("after the reload the certificate is the same")
	}
	pair = ""
	var restart *RestartError
	if _, err := g.Reload(t.Context(), "a test"); !errors.As(err, &restart) {
		t.Errorf("TLS ended by a reload: %v", err)
	}
	if res, err := http.Get("http://" + g.AdminAddr().String() + "/healthz"); err == nil {
		res.Body.Close()
		t.Errorf("without TLS the listener answers %d", res.StatusCode)
	}
}
