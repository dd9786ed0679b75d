package refusals_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/refusals"
)

func TestCommand(t *testing.T) {
	at := time.Unix(1770091506, 0)
	for _, c := range []struct {
		name   string
		of     refusals.Refusal
		custom bool
		want   string
	}{
		{"a signature", refusals.Refusal{At: at, Source: "billing-eu", Method: "POST", Unverified: true, Headers: []string{"Accept", "Content-Type", "Stripe-Signature", "User-Agent"}}, false,
			"hookonce verify --provider stripe --secret env:BILLING_EU_SECRET --now 1770091506 --body FILE -H 'Content-Type: VALUE' -H 'Stripe-Signature: VALUE'"},
		{"a header that proxies add and a sender signs", refusals.Refusal{At: at, Source: "billing", Method: "POST", Unverified: true, Headers: []string{"X-Forwarded-For", "X-Request-Id"}}, false,
			"hookonce verify --provider stripe --secret env:BILLING_SECRET --now 1770091506 --body FILE -H 'X-Request-Id: VALUE'"},
		{"a challenge of one's own", refusals.Refusal{At: at, Source: "billing", Method: "GET", Unverified: true}, true,
			"hookonce verify --spec SPECIFICATION --secret env:BILLING_SECRET --now 1770091506 --method GET"},
		{"what has no signature to blame", refusals.Refusal{At: at, Source: "billing", Method: "POST", Reason: "too_large"}, false, ""},
	} {
		if got := c.of.Command("stripe", c.custom); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The names of headers and methods are chosen by strangers. Who copies the command into a shell runs nothing of theirs.
func TestCommandHasNothingThatAShellActsOn(t *testing.T) {
	header := http.Header{"X-`touch${IFS}owned`": {""}, "X'|touch\towned;'": {""}, "X-$(touch owned)": {""}, "X\n-Y": {""}, "X-Fine": {""}, "--Help": {""}}
	r := refusals.Refusal{Source: "billing", Method: "GET;touch owned", Unverified: true, Headers: refusals.Names(header)}
	text := r.Command("stripe", false)
	if strings.Contains(text, "owned") || !strings.Contains(text, "X-Fine") || strings.Contains(text, "Help") {
		t.Errorf("the command is %s", text)
	}
	out, err := exec.Command("sh", "-c", "set -- "+text+`; printf '%s\n' "$@"`).Output()
	if err != nil || !strings.Contains(string(out), "X-Fine: VALUE\n") {
		t.Errorf("a shell reads %q: %v", out, err)
	}
}
