package header

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestLoopbackHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8081": true, "LOCALHOST": true, "LocalHost:8081": true,
		"127.0.0.1": true, "127.0.0.9:8081": true, "[::1]": true, "[::1]:8081": true, "[::ffff:127.0.0.1]:8081": true,
		"": false, ":8081": false, "localhost.": false, "localhost.evil.example": false, "127.0.0.1.evil.example:8081": false,
		"evil.example": false, "192.0.2.1:8081": false, "0.0.0.0": false, "[::]:8081": false, "2130706433": false, "127.1": false,
	} {
		if got := LoopbackHost(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}

func TestProxied(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true, "X-Forwarded-Server": true, "X-Forwarded-Port": true,
		"Forwarded": true, "Via": true, "Cf-Connecting-Ip": true, "X-Real-Ip": true, "True-Client-Ip": true,
		"Accept": false, "Host": false, "Origin": false, "X-Request-Id": false, "Authorization": false,
	} {
		for _, value := range []string{"192.0.2.1", ""} { // a field that is there says enough
			r := httptest.NewRequest("GET", "/", nil)
			r.Header[name] = []string{value}
			if got := Proxied(r); got != want {
				t.Errorf("%s: %q: %t", name, value, got)
			}
		}
	}
	for proto, want := range map[string]bool{"HTTP/0.9": true, "HTTP/1.0": true, "HTTP/1.1": false, "HTTP/2.0": false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Proto = proto
		r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(proto)
		if got := Proxied(r); got != want {
			t.Errorf("%s: %t", proto, got)
		}
	}
}
