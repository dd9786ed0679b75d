package deliver

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// Over HTTP/2 a request may be sent again although it was read: see NewTransport.
func TestRequestsOfClientsAreHTTP1(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	transport := NewTransport(AddressPolicy{}, func(t *http.Transport) {
		t.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	})
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.ProtoMajor != 1 {
		t.Errorf("it was sent over %s", answer.Proto)
	}
}

func TestPublic(t *testing.T) {
	for _, c := range []struct {
		address string
		public  bool
	}{
		{"1.1.1.1", true},
		{"192.0.1.1", true},
		{"172.15.255.255", true},
		{"172.32.0.0", true},
		{"100.63.255.255", true},
		{"2606:4700:4700::1111", true},
		{"::ffff:1.1.1.1", true},
		{"64:ff9b::101:101", true},
		{"2002:101:101::", true},

		{"127.0.0.1", false},
		{"127.255.255.255", false},
		{"10.0.0.1", false},
		{"172.16.0.1", false},
		{"172.31.255.255", false},
		{"192.168.1.1", false},
		{"169.254.169.254", false}, // metadata of clouds
		{"100.64.0.1", false},
		{"0.0.0.0", false}, // connects to this machine
		{"0.1.2.3", false},
		{"224.0.0.1", false},
		{"255.255.255.255", false},
		{"192.0.0.1", false},
		{"192.0.2.1", false},
		{"198.18.0.1", false},
		{"198.51.100.1", false},
		{"203.0.113.1", false},
		{"::", false},
		{"::1", false},
		{"fe80::1", false},
		{"fe80::1%eth0", false},
		{"fc00::1", false},
		{"fd00:ec2::254", false}, // metadata of clouds
		{"fec0::1", false},
		{"ff02::1", false},
		{"2001:db8::1", false},
		{"::ffff:127.0.0.1", false},
		{"::127.0.0.1", false},
		{"64:ff9b::7f00:1", false},
		{"64:ff9b::a9fe:a9fe", false},
		{"64:ff9b:1::1", false},
		{"2002:7f00:1::", false},
		{"2002:a00:1::", false},
	} {
		if got := public(netip.MustParseAddr(c.address)); got != c.public {
			t.Errorf("public(%s) = %t", c.address, got)
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	for _, c := range []struct {
		policy  AddressPolicy
		address string
		refused bool
	}{
		{AddressPolicy{}, "127.0.0.1:25", false},
		{AddressPolicy{DenyPrivate: true}, "1.1.1.1:443", false},
		{AddressPolicy{DenyPrivate: true}, "10.0.0.1:443", true},
		{AddressPolicy{DenyPrivate: true}, "[::1]:443", true},
		{AddressPolicy{DenyPrivate: true}, "[fe80::1%eth0]:443", true},
		{AddressPolicy{Ports: []uint16{443}}, "10.0.0.1:443", false},
		{AddressPolicy{Ports: []uint16{443, 8443}}, "10.0.0.1:80", true},
		{AddressPolicy{Ports: []uint16{443}, DenyPrivate: true}, "1.1.1.1:443", false},
		{AddressPolicy{DenyPrivate: true}, "no address", true},
	} {
		if err := c.policy.control("tcp", c.address, nil); (err != nil) != c.refused {
			t.Errorf("%+v, %s: %v", c.policy, c.address, err)
		}
	}
}
