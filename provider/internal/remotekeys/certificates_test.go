package remotekeys

import "testing"

// TestOnePlaceOfACertificate: a path that could be spelt otherwise is none.
func TestOnePlaceOfACertificate(t *testing.T) {
	paths := NewCertificates(nil, `([a-z0-9-]+\.)+paypal\.com/[A-Za-z0-9/._-]+`, nil)
	for path, ok := range map[string]bool{"/v1/certs/C-1": true, "/v1//certs/C-1": false, "/v1/./certs/C-1": false, "/v1/x/../certs/C-1": false, "/v1/certs/C-1/": false} {
		if place, got := paths.place("https://api.paypal.com" + path); got != ok {
			t.Errorf("%s: %s, %v", path, place, got)
		}
	}
}
