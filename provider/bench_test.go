package provider

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// sized returns a signed sample of the provider's event, filled up to about that many bytes.
func sized(t testing.TB, p *spec.Provider, bytes int) *hookonce.Request {
	t.Helper()
	req := sent(t, p, "id_1", "")
	text, rest, ok := strings.Cut(string(req.Body), "{")
	if missing := bytes - len(req.Body) - len(`"pad": "", `); ok && missing > 0 {
		req.Body = []byte(text + `{"pad": "` + strings.Repeat("x", missing) + `", ` + rest)
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
	}
	return req
}

// BenchmarkOpen verifies and reads events of 2 KB: with the time in the signature (stripe), with an id in
// a header (standard), of the plainest sort (github), with the URL (square, hubspot), from a form
// (twilio), items that are signed one by one (adyen), and signed with a private key (discord).
func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"stripe", "standard", "github", "square", "hubspot", "twilio", "adyen"} {
		p := fake(b, name)
		b.Run(name, func(b *testing.B) { benchmarkOpen(b, p, sized(b, p, 2048)) })
	}
	public, key := newEd25519(b)
	p, err := Build("discord", spec.Settings{Secrets: spec.Secrets(public)})
	if err != nil {
		b.Fatal(err)
	}
	body := `{"version":1,"type":1,"pad":"` + strings.Repeat("x", 2000) + `"}`
	b.Run("discord", func(b *testing.B) { benchmarkOpen(b, p, discordRequest(key, body)) })
}

func benchmarkOpen(b *testing.B, p *spec.Provider, req *hookonce.Request) {
	b.SetBytes(int64(len(req.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Open(req); err != nil {
			b.Fatal(err)
		}
	}
}
