package config

import (
	"fmt"
	"strings"
	"testing"
)

// A reload sees what is different in the destination that a source writes as a group.
func TestChanges_ownDestination(t *testing.T) {
	load := func(to string) *Config {
		cfg, err := Load(Input{Path: "hookonce.yaml", Environ: environ, Data: []byte(
			"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:STRIPE\"]\n" + to)})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for _, tt := range []struct{ before, after, want string }{
		{"    to: http://h/\n", "    to: {url: http://h/, timeout: 3s}\n", "[source a: to changed]"},
		{"    to: {url: http://h/, timeout: 3s}\n", "    to: {url: http://h/, timeout: 3s}\n", "[]"},
		{"    to: {url: http://h/, timeout: 3s}\n", "    to: {url: http://i/, timeout: 3s}\n", "[source a: to changed (http://h/ → http://i/)]"},
		{"    to: {url: http://h/, timeout: 3s, secrets: [wwwwwwww]}\n", "    to: {url: http://h/, timeout: 4s, secrets: [wwwwwwww, yyyyyyyy]}\n",
			"[source a: to.secrets changed (1 → 2) source a: to.timeout changed (3s → 4s)]"},
		{"    to: {url: http://h/, app_secret: wwwwwwww}\n", "    to: {url: http://h/, app_secret: yyyyyyyy, sign_as: provider}\n", "[source a: to.app_secret changed]"},
	} {
		var texts []string
		for _, c := range load(tt.before).Changes(load(tt.after)) {
			texts = append(texts, c.Text)
		}
		if got := fmt.Sprint(texts); got != tt.want {
			t.Errorf("from %s to %s: %s, want %s", strings.TrimSpace(tt.before), strings.TrimSpace(tt.after), got, tt.want)
		}
	}
}

// The destination of a source has its name and what the source says about it, whether that is beside the URL or in a
// group; flags override the URL alone.
func TestOwnDestination(t *testing.T) {
	const head = "delivery: {timeout: 7s}\nsources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:STRIPE\"]\n"
	for _, tt := range []struct{ text, env, want string }{
		{"    to: http://h/\n", "", "a http://h/ 7s provider app:  at "},
		{"    to: http://h/\n    sign_as: none\n", "", "a http://h/ 7s none app:  at "},
		{"    to: http://h/\n    app_secret: \"env:STRIPE\"\n    app_url: http://p/\n", "", "a http://h/ 7s provider app: whsec_c2VjcmV0LWZvci10ZXN0cy0x at http://p/"},
		{"    to: {url: http://h/}\n", "", "a http://h/ 7s provider app:  at "},
		{"    to: {url: http://h/, timeout: 3s, sign_as: none}\n", "", "a http://h/ 3s none app:  at "},
		{"    to: {url: http://h/, app_secret: \"env:STRIPE\"}\n    app_url: http://p/\n", "", "a http://h/ 7s provider app: whsec_c2VjcmV0LWZvci10ZXN0cy0x at http://p/"},
		{"    to: {url: http://h/, timeout: 3s}\n", "http://other/", "a http://other/ 3s provider app:  at "},
	} {
		env := environ
		if tt.env != "" {
			env = append([]string{"HOOKONCE_SOURCE=a", "HOOKONCE_TO=" + tt.env}, environ...)
		}
		cfg, err := Load(Input{Path: "hookonce.yaml", Environ: env, Data: []byte(head + tt.text)})
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		d := cfg.AllDestinations()[0]
		if got := fmt.Sprintf("%s %s %v %s app: %s at %s", d.Name, d.URL, d.Timeout, d.SignAs, d.AppSecret.Reveal(), d.AppURL); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
		}
	}
}
