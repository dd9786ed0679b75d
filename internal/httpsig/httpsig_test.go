package httpsig

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
)

// The keys and signatures of RFC 9421, appendix B.
const (
	sharedSecret = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="
	ed25519Key   = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n"
	rsaPSSKey    = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2
+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+
oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq
gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W
Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4
aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI
2wIDAQAB
-----END PUBLIC KEY-----
`
)

func publicKey(t *testing.T, text string) any {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// request is the test-request of appendix B.2.
func request() *Request {
	return &Request{Method: "POST", URL: "https://example.com/foo?param=Value&Pet=dog", Header: http.Header{
		"Date":           {"Tue, 20 Apr 2021 02:07:55 GMT"},
		"Content-Type":   {"application/json"},
		"Content-Digest": {"sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"},
		"Content-Length": {"18"},
	}}
}

// TestAppendixB verifies the signatures of RFC 9421, appendix B.2. Each fails with another byte of what is signed.
func TestAppendixB(t *testing.T) {
	mac, _ := base64.StdEncoding.DecodeString(sharedSecret)
	for _, c := range []struct {
		section          string
		algorithm        Algorithm
		key              any
		input, signature string
	}{
		{"B.2.1", RSAPSSSHA512, publicKey(t, rsaPSSKey), `sig-b21=();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"`,
			"sig-b21=:d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q==:"},
		{"B.2.2", RSAPSSSHA512, publicKey(t, rsaPSSKey), `sig-b22=("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"`,
			"sig-b22=:LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTugEjHSw==:"},
		{"B.2.5", HMACSHA256, mac, `sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
			"sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:"},
		{"B.2.6", Ed25519, publicKey(t, ed25519Key), `sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			"sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"},
	} {
		t.Run(c.section, func(t *testing.T) {
			found, err := Parse([]string{c.input}, []string{c.signature})
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			base, err := found[0].Base(request())
			if err != nil {
				t.Fatal(err)
			}
			if !c.algorithm.Verify(c.key, base, found[0].Value) {
				t.Errorf("it does not verify:\n%s", base)
			}
			if found[0].Input() != c.input || *found[0].Created != 1618884473 {
				t.Errorf("read as %s", found[0].Input())
			}
			for i := range base {
				base[i] ^= 1
				if c.algorithm.Verify(c.key, base, found[0].Value) {
					t.Errorf("it verifies with another byte %d", i)
				}
				base[i] ^= 1
			}
			for _, other := range Algorithms {
				if other != c.algorithm && other.Verify(c.key, base, found[0].Value) {
					t.Errorf("it verifies as %s", other)
				}
			}
		})
	}
}

// TestComponents has the examples of RFC 9421, section 2.
func TestComponents(t *testing.T) {
	for _, c := range []struct{ url, component, want string }{
		{"https://www.example.com/path?param=value", `"@method"`, "POST"},
		{"https://www.example.com/path?param=value", `"@target-uri"`, "https://www.example.com/path?param=value"},
		{"https://www.EXAMPLE.com:443", `"@authority"`, "www.example.com"},
		{"http://www.example.com:443", `"@authority"`, "www.example.com:443"},
		{"HTTP://www.example.com", `"@scheme"`, "http"},
		{"https://www.example.com/path?param=value", `"@request-target"`, "/path?param=value"},
		{"https://www.example.com", `"@path"`, "/"},
		{"https://www.example.com/path?param=value&foo=bar&baz=bat%2Dman", `"@query"`, "?param=value&foo=bar&baz=bat%2Dman"},
		{"https://www.example.com/path?queryString", `"@query"`, "?queryString"},
		{"https://www.example.com/path", `"@query"`, "?"},
		{"https://www.example.com/p?param=value&foo=bar&baz=batman&qux=", `"@query-param";name="baz"`, "batman"},
		{"https://www.example.com/p?param=value&foo=bar&baz=batman&qux=", `"@query-param";name="qux"`, ""},
		{"https://www.example.com/p?var=this%20is%20a%20big%0Amultiline%20value", `"@query-param";name="var"`, "this%20is%20a%20big%0Amultiline%20value"},
		{"https://www.example.com/p?bar=with+plus+whitespace", `"@query-param";name="bar"`, "with%20plus%20whitespace"},
		{"https://www.example.com/p?fa%C3%A7ade%22%3A%20=something", `"@query-param";name="fa%C3%A7ade%22%3A%20"`, "something"},
		{"https://www.example.com/p?a=1&a=2", `"@query-param";name="a"`, "2 times"},
		{"https://www.example.com/p", `"@status"`, "does not have"},
		{"/p", `"@path"`, "not known"},
		{"https://www.example.com/p", `"x-two"`, "a, b"},
		{"https://www.example.com/p", `"x-none"`, "is absent"},
		{"https://www.example.com/p", `"x-lines"`, "line break"},
	} {
		found, err := Parse([]string{"a=(" + c.component + ")"}, []string{"a=:AAAA:"})
		if err != nil {
			t.Errorf("%s: %v", c.component, err)
			continue
		}
		r := &Request{Method: "POST", URL: c.url, Header: http.Header{"X-Two": {" a ", "b"}, "X-Lines": {"a\n\"@method\": GET"}}}
		base, err := found[0].Base(r)
		first, _, _ := strings.Cut(string(base), "\n")
		if first != c.component+": "+c.want && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s of %s: %q, %v; want %q", c.component, c.url, first, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"a" `, maxComponents+1), " ")
	for _, c := range []struct{ input, signature, want string }{
		{`a=("@method";req)`, "a=:AAAA:", "req is not supported"},
		{`a=("cookie";bs)`, "a=:AAAA:", "bs is not supported"},
		{`a=("@query-param")`, "a=:AAAA:", "without a name"},
		{`a=("date" "date")`, "a=:AAAA:", "twice"},
		{`a=("Date")`, "a=:AAAA:", "lower case"},
		{`a=(date)`, "a=:AAAA:", "lower case"},
		{`a=("date");created="1"`, "a=:AAAA:", "another type"},
		{`a=("date");keyid=k`, "a=:AAAA:", "no text in quotes"},
		{`a=("date");tag="x";tag="y"`, "a=:AAAA:", "same name twice"},
		{`a=("date"), a=("date")`, "a=:AAAA:", "same name twice"},
		{`a=("date")`, "b=:AAAA:", "same labels"},
		{`a=("date"), b=("date")`, "a=:AAAA:", "same labels"},
		{`a=("date")`, `a="AAAA"`, "no byte sequence"},
		{`a=("date")`, "a=:AAA:", "cannot be read"},
		{`a=("date")`, "a=:AAAB=:", "cannot be read"},
		{`a="date"`, "a=:AAAA:", "no list"},
		{`a=("date""host")`, "a=:AAAA:", "cannot be read"},
		{`a=("date"`, "a=:AAAA:", "cannot be read"},
		{`a=("da` + "\x7f" + `te")`, "a=:AAAA:", "cannot be read"},
		{`a=("date"),`, "a=:AAAA:", "cannot be read"},
		{`a=("date");created=1234567890123456`, "a=:AAAA:", "cannot be read"},
		{"a=(" + many + ")", "a=:AAAA:", "too long"},
		{strings.Repeat("a", maxField+1), "a=:AAAA:", "too long"},
		{"a=(),b=(),c=(),d=(),e=(),f=(),g=(),h=(),i=()", "a=:AAAA:", "too long"},
	} {
		if _, err := Parse([]string{c.input}, []string{c.signature}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s, %s: %v; want %q", c.input, c.signature, err, c.want)
		}
	}
}

func TestDigest(t *testing.T) {
	body := []byte(`{"hello": "world"}`)
	good := request().Header[DigestHeader][0]
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{[]string{good}, ""},
		{[]string{Digest(body)}, ""},
		{[]string{"md5=:AAAA:", good, Digest(body)}, ""},
		{[]string{good + ", " + Digest(nil)}, "is not that of the body"},
		{[]string{"md5=:AAAA:"}, "neither"},
		{nil, "neither"},
		{[]string{"sha-256"}, "is not that of the body"},
		{[]string{"sha-256=:"}, "cannot be read"},
	} {
		err := CheckDigest(c.lines, body)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v; want %q", c.lines, err, c.want)
		}
	}
}

// FuzzParse: what is read is written in one form, which is read as the same again.
func FuzzParse(f *testing.F) {
	f.Add(`sig1=( "@method"  "@query-param";name="a\"b");created=1;  keyid="k";x;y=?0`, "sig1=:AAAA:")
	f.Add(`a=("date"), b=()`, "a=:AAAA:,\tb=::")
	f.Fuzz(func(t *testing.T, input, signature string) {
		found, err := Parse([]string{input}, []string{signature})
		if err != nil {
			return
		}
		for _, s := range found {
			again, err := Parse([]string{s.Input()}, []string{s.Field(s.Value)})
			if err != nil || len(again) != 1 || again[0].Input() != s.Input() || string(again[0].Value) != string(s.Value) {
				t.Errorf("%q is written as %q: %v", input, s.Input(), err)
			}
		}
	})
}

func TestKeysFitTheirAlgorithm(t *testing.T) {
	if HMACSHA256.Fits([]byte{}) || Ed25519.Fits(ed25519.PublicKey("short")) || Algorithm("none").Known() || Ed25519.Fits([]byte(strings.Repeat("k", 32))) {
		t.Error("a key fits that is none")
	}
}
