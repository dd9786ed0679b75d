package ingest_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/ingest"
)

func networks(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// The address of the sender is that of the connection, and only trusted proxies can say otherwise.
func TestAllow(t *testing.T) {
	const ok, refused = http.StatusOK, http.StatusServiceUnavailable
	proxies := networks("10.0.0.0/8", "fd00::/8")
	for _, c := range []struct {
		name      string
		proxies   []netip.Prefix
		remote    string
		forwarded []string
		want      int
	}{
		{"direct", nil, "192.0.2.7:4000", nil, ok},
		{"direct, of another network", nil, "198.51.100.7:4000", nil, refused},
		{"direct, IPv6", nil, "[2001:db8::7]:4000", nil, ok},
		{"direct, IPv4 as IPv6", nil, "[::ffff:192.0.2.7]:4000", nil, ok},
		{"direct, with a zone", nil, "[2001:db8::7%eth0]:4000", nil, ok},
		{"a header that nobody may send", nil, "198.51.100.7:4000", []string{"192.0.2.7"}, refused},
		{"the same, with proxies elsewhere", proxies, "198.51.100.7:4000", []string{"192.0.2.7"}, refused},
		{"behind a proxy", proxies, "10.1.1.1:4000", []string{"192.0.2.7"}, ok},
		{"behind a proxy, of another network", proxies, "10.1.1.1:4000", []string{"198.51.100.7"}, refused},
		{"behind two", proxies, "10.1.1.1:4000", []string{"192.0.2.7, fd00::1"}, ok},
		{"behind two, in two lines", proxies, "10.1.1.1:4000", []string{"192.0.2.7", "10.2.2.2"}, ok},
		{"with a port", proxies, "10.1.1.1:4000", []string{"192.0.2.7:555"}, ok},
		{"IPv6 without a port", proxies, "10.1.1.1:4000", []string{"2001:db8::7"}, ok},
		{"IPv6 without a port, with a zone", proxies, "10.1.1.1:4000", []string{"2001:db8::7%eth0"}, ok},
		{"IPv6 in brackets without a port", proxies, "10.1.1.1:4000", []string{"[2001:db8::7]"}, refused},
		{"without an address", proxies, "10.1.1.1:4000", []string{":555"}, refused},
		{"with a port, IPv6", proxies, "10.1.1.1:4000", []string{"[2001:db8::7]:555"}, ok},
		{"a lie before the truth", proxies, "10.1.1.1:4000", []string{"192.0.2.7, 198.51.100.7"}, refused},
		{"a lie in a line of its own", proxies, "10.1.1.1:4000", []string{"192.0.2.7", "198.51.100.7, 10.2.2.2"}, refused},
		{"damage before the truth", proxies, "10.1.1.1:4000", []string{"what?, 192.0.2.7"}, ok},
		{"damage in place of it", proxies, "10.1.1.1:4000", []string{"192.0.2.7, what?"}, refused},
		{"an empty header", proxies, "10.1.1.1:4000", []string{""}, refused},
		{"the proxy itself", proxies, "10.1.1.1:4000", nil, refused},
		{"nothing but proxies", proxies, "10.1.1.1:4000", []string{"10.3.3.3, 10.2.2.2"}, refused},
		{"no address", nil, "@", nil, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, func(o *ingest.Options) {
				o.TrustedProxies = c.proxies
				o.Sources[0].Allow = networks("192.0.2.0/24", "2001:db8::/32")
			})
			r := request("billing", `{"id":"a"}`)
			r.RemoteAddr = c.remote
			r.Header["X-Forwarded-For"] = c.forwarded
			if c.want == refused {
				r.Body = unreadable{t}
			}
			w := serve(g, r)
			if w.Code != c.want {
				t.Fatalf("answered %d %s, want %d", w.Code, w.Body, c.want)
			}
			if c.want == refused {
				wantProblem(t, w.Code, w.Header(), w.Body.Bytes(), refused, "address")
			}
			other := request("orders", `{"id":"a"}`)
			other.RemoteAddr = c.remote
			if w := serve(g, other); w.Code != ok {
				t.Errorf("a source without a list answered %d", w.Code)
			}
		})
	}
}

// Strangers take nothing from the rate of those who are allowed.
func TestStrangersUseUpNoRate(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) {
		o.Sources[0].Allow = networks("192.0.2.0/24")
		o.Sources[0].Rate, o.Sources[0].Burst = 0.001, 1
	})
	for _, remote := range []string{"198.51.100.7:1", "198.51.100.7:2", "192.0.2.7:1"} {
		r := request("billing", `{"id":"a"}`)
		r.RemoteAddr = remote
		want := http.StatusServiceUnavailable
		if strings.HasPrefix(remote, "192.") {
			want = http.StatusOK
		}
		if w := serve(g, r); w.Code != want {
			t.Errorf("%s was answered %d, want %d", remote, w.Code, want)
		}
	}
}

// FuzzForwarded: whatever is in the header, it says nothing without a trusted proxy, and behind one the
// last address counts that no proxy has, whatever stands before it.
func FuzzForwarded(f *testing.F) {
	for _, text := range []string{"", "192.0.2.7", "192.0.2.7, 10.0.0.1", "a,,b", "[::1]:5", "fe80::1%eth0", ", ,", "10.1.1.1:99999"} {
		f.Add(text)
	}
	trusted := networks("10.0.0.0/8")
	f.Fuzz(func(t *testing.T, before string) {
		for remote, want := range map[string]string{"198.51.100.7:1": "198.51.100.7", "10.0.0.1:1": "192.0.2.9"} {
			h := http.Header{"X-Forwarded-For": {before, before + ", 192.0.2.9, 10.9.9.9"}}
			if got, ok := ingest.Sender(trusted, remote, h); !ok || got.String() != want {
				t.Errorf("from %s after %q: %s, %v; want %s", remote, before, got, ok, want)
			}
		}
		got, ok := ingest.Sender(trusted, "10.0.0.1:1", http.Header{"X-Forwarded-For": {before}})
		if ok && (!got.IsValid() || got.Zone() != "" || got.Is4In6()) {
			t.Errorf("%q is taken for %s", before, got)
		}
	})
}
