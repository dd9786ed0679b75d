package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestSecretsStaySecret puts one secret everywhere where a configuration can hold one, rightly and
// wrongly, and looks for it in everything that is printed.
func TestSecretsStaySecret(t *testing.T) {
	const secret = "hunter2"
	const whole = "hunter2-hunter2-hunter2" // long enough to be taken
	taken := 0
	for _, file := range []string{
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [hunter2]\n    to: http://h/\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: hunter2\n    to: http://h/\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [[hunter2]]\n    to: http://h/\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: {hunter2: hunter2}\n    to: http://u:hunter2@h/\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:S\"]\n    to: \"http://u:hunter2@h:x/\"\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [{secret: hunter2, until: 2020-01-01T00:00:00Z}]\n    to: http://h/\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [{secret: hunter2, from: hunter2}]\n    to: http://h/\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:S\"]\n    token: hunter2\n    to: http://h/\n",
		"destinations:\n  - name: d\n    url: http://u:hunter2@h/\n    secrets: [hunter2]\n    headers: {Authorization: hunter2}\n" + oneSource,
		"destinations:\n  - name: d\n    url: \"http://u:hunter2@h:x/\"\n    secrets: [{secret: hunter2}]\n    headers: {Cookie: \"hunter2\\r\\n\"}\n" + oneSource,
		"destinations:\n  - name: d\n    url: http://h/\n    secrets: [whsec_hunter2]\n    headers: {X-Key: [hunter2]}\n" + oneSource,
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:S\"]\n    to: http://h/\n    app_secret: hunter2\n    app_url: http://h/?token=hunter2\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:S\"]\n    to: {url: \"http://u:hunter2@h/\", secrets: [hunter2], app_secret: hunter2, app_url: \"http://u:hunter2@h/\"}\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:S\"]\n    to: http://hunter2@h/\n",
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:S\"]\n    url: http://hunter2:@h/\n    to: {url: \"http://hunter2:@h/\", app_url: \"http://hunter2@h/\"}\n",
		"destinations:\n  - name: d\n    url: http://hunter2@h/\n    app_url: http://hunter2:@h/\n" + oneSource,
		"sources:\n  - name: a\n    provider: stripe\n    secrets: [\"env:S\"]\n    to: {url: hunter2, secrets: hunter2, app_secret: [hunter2], app_url: hunter2}\n",
		"sources:\n  - name: a\n    provider: standard\n    secrets: [\"env:S\"]\n    to: http://h/\n    app_secret: whsec_hunter2\n",
		"alerts:\n  heartbeat: http://u:hunter2@h/\n  notify:\n    - name: a\n      url: slack://hunter2\n      secrets: [whsec_hunter2]\n" + oneSource,
		"alerts:\n  heartbeat: env:S\n  notify:\n    - name: a\n      url: env:S\n      secrets: [hunter2]\n    - {url: {hunter2: hunter2}}\n" + oneSource,
		"alerts:\n  heartbeat: env:BEAT\n  notify:\n    - name: a\n      url: env:BEAT\n      secrets: [hunter2]\n" + oneSource,
		"store: postgres://u:hunter2@h/db\n" + oneSource,
		strings.Replace(oneSource, `["env:STRIPE"]`, `[hunter2]`, 1) + "    url: https://h/in?token=hunter2\n",
		strings.Replace(oneSource, `["env:STRIPE"]`, `[{hunter2}]`, 1),
		strings.Replace(oneSource, `["env:STRIPE"]`, `[{hunter2: x}]`, 1),
		"store: postgres://h/db?user=u&password=hunter2\n" + oneSource,
		"store: \"postgres://u:hunter2@h:port/db\"\n",
		"store: postgres://u:hunter2@/db\n",
		"store: postgres://u@h/db?sslpassword=hunter2\n" + oneSource,
		"store: postgres://u@h/db?password=hunter2;x\n" + oneSource,
		"store: postgres://u@h/db?password=%zzhunter2\n" + oneSource,
		"store: host=h password=hunter2\n",
	} {
		file = strings.ReplaceAll(file, secret, whole)
		in := Input{Path: "hookonce.yaml", Data: []byte(file), Environ: []string{"S=" + whole, "STRIPE=" + whole, "BEAT=https://h/hunter2?a=hunter2"}}
		if out := outcome(in); strings.Contains(out, secret) {
			t.Errorf("%q shows its secret:\n%s", file, out)
		}
		cfg, err := Load(in)
		if err != nil {
			continue
		}
		taken++
		var log bytes.Buffer
		s := cfg.Sources[0].Secrets[0]
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "store", cfg.Store.String())
		for _, printed := range []any{s, cfg, *cfg, cfg.Sources, cfg.Destinations, cfg.Store, cfg.Notify, cfg.Heartbeat} {
			fmt.Fprintf(&log, "%v %+v %#v %s %d", printed, printed, printed, printed, printed)
		}
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q logs its secret:\n%s", file, log.String())
		}
		if s.Reveal() != whole {
			t.Errorf("Reveal() = %q", s.Reveal())
		}
	}
	if taken < 10 {
		t.Errorf("%d of the files are taken: of the others nothing is shown but why", taken)
	}
}
