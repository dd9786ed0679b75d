package header

import (
	"strings"
	"testing"
)

func TestCheckReply(t *testing.T) {
	for name, want := range map[string]string{
		"X-Hook-Secret": "", "WebHook-Allowed-Origin": "", "webhook-allowed-rate": "",
		"": "is not the name", "X Hook": "is not the name", "X-Hook\r\n": "is not the name",
		"Set-Cookie": "begin with X- or Webhook-", "Location": "begin with X- or Webhook-", "Content-Type": "begin with X- or Webhook-",
		"Access-Control-Allow-Origin": "begin with X- or Webhook-", "Hookonce-Status": "begin with X- or Webhook-",
		"X-Accel-Redirect": "act on it", "x-sendfile": "act on it", "X-Frame-Options": "act on it", "X-Content-Type-Options": "act on it",
	} {
		err := CheckReply(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]bool{
		"b537207f20cbfa02": true, "eventgrid.azure.net": true, "!~": true, strings.Repeat("a", 1024): true,
		"": false, "a b": false, "a\r\nSet-Cookie: b": false, "a\x7f": false, "é": false, "a\x00": false, strings.Repeat("a", 1025): false,
	} {
		if Visible(text) != want {
			t.Errorf("%.40q: %v", text, !want)
		}
	}
}
