package notify_test

import (
	"os"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/notify"
)

// What cannot work is refused before anything is sent, in words that have nothing of the address.
func TestCheck(t *testing.T) {
	const token = "hunter2hunter2"
	signs := map[bool][]string{true: {whole}}
	key := strings.Repeat("f", 32)
	for address, want := range map[string]string{
		"https://alerts.internal/hooks":              "",
		"pagerduty://events.eu.pagerduty.com/" + key: "",
		"pagerduty:///" + key:                        "",
		"pagerduty://" + key:                         "",
		"opsgenie://api.eu.opsgenie.com/" + token + "?priority=P1&tags=payments,ledger": "",
		"opsgenie:///" + token:                                                     "",
		"opsgenie://api.opsgenie.com/":                                             "opsgenie: the key of an API integration is missing",
		"opsgenie://" + token:                                                      "opsgenie: the key of an API integration is missing",
		"opsgenie://api.opsgenie.com/" + token + "?urgency=" + token:               "opsgenie: a parameter behind the question mark",
		"opsgenie://api.opsgenie.com:port/" + token:                                "not the address of a channel",
		"smtp://u:" + token + "@mail.internal?from=h@example.com&to=a@example.com": "",
		"smtps://mail.internal:465/?from=h@example.com&to=a@example.com,b@x.org":   "",
		"smtp://localhost:25?from=h@example.com&to=a@example.com&tls=none":         "",
		"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook":        "",
		"generic+https://alerts.internal/hooks":                                    "",
		"matrix://:" + token + "@matrix.internal/?rooms=ops":                       "",
		"":                                  "not the address of a channel",
		token:                               "not the address of a channel",
		"https://%zz" + token:               "not the address of a channel",
		"https:///" + token:                 "name a host",
		"https://alerts.internal/#" + token: "no fragment",
		"logger://" + token:                 `"logger" is no kind of channel`,
		"carrier-pigeon://" + token:         "is no kind of channel",
		"slack://" + token:                  "; write slack://hook:A-B-C@webhook",
		"https://hooks.slack.com/services/T0/B0/" + token:                                                      "write its address as slack://hook:A-B-C@webhook, without secrets",
		"https://discord.com/api/webhooks/1/" + token:                                                          "write its address as discord://TOKEN@ID",
		"https://example.webhook.office.com/webhookb2/" + token:                                                "write its address as teams://",
		"https://chat.googleapis.com/v1/spaces/x/messages?token=" + token:                                      "write its address as googlechat://",
		"slack://hook:" + token + "@webhook":                                                                   "slack: ",
		"slack+x://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook":                                  "plus sign",
		"telegram://" + token:                                                                                  "telegram: ",
		"discord://" + token + "@id?nonsense=" + token:                                                         "discord: ",
		"matrix://user:" + token + "@matrix.internal/":                                                         "access token",
		"pagerduty://events.pagerduty.com/" + token:                                                            "32 letters",
		"pagerduty://events.pagerduty.com/" + key + "?severity=" + token:                                       "leave out the rest",
		"smtp://u:" + token + "@mail.internal":                                                                 "from is no mail address",
		"smtp://mail.internal?from=h@example.com&to=" + token:                                                  "to has something",
		"smtp://mail.internal?from=h@example.com&to=a@example.com&subject=" + token:                            "leave out the rest",
		"smtp://u:" + token + "@mail.internal?from=h@example.com&to=a@example.com&tls=none":                    "show the password",
		"smtp://mail.internal:0?from=h@example.com&to=a@example.com":                                           "port",
		"smtp://mail.internal?from=h@example.com&to=" + strings.Repeat("a@example.com,", 50) + "b@example.com": "are the most",
	} {
		err := notify.Check(address, signs[strings.HasPrefix(address, "https:")])
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", address, err, want)
		case err != nil && strings.Contains(err.Error(), token):
			t.Errorf("%s: the error shows a secret: %v", address, err)
		}
	}
	if err := notify.Check("https://alerts.internal/hooks", nil); err == nil || !strings.Contains(err.Error(), "add secrets") {
		t.Errorf("a webhook that is not signed: %v", err)
	}
	if err := notify.Check("slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", []string{whole}); err == nil || !strings.Contains(err.Error(), "nothing to sign") {
		t.Errorf("a chat that is signed: %v", err)
	}
	if _, err := notify.New(notify.Config{Address: "https://alerts.internal/", Secrets: []string{"whsec_" + token + "!"}}, notify.Options{}); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("a secret that is none: %v", err)
	}
}

// Every chat has a shape, which errors give and the page lists.
func TestShapesStandInThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range notify.ChatSchemes() {
		switch shape := notify.Shapes[scheme]; {
		case !strings.HasPrefix(shape, scheme):
			t.Errorf("%s has the shape %q", scheme, shape)
		case !strings.Contains(string(page), "`"+shape+"`"):
			t.Errorf("docs/alerts.md does not have `%s`", shape)
		}
	}
	const parts = "slack://hooks.slack.com/services/TTTT"
	if err := notify.Check(parts, nil); err == nil || strings.Contains(err.Error(), "[hidden]") {
		t.Errorf("fixed words are hidden: %v", err)
	}
}
