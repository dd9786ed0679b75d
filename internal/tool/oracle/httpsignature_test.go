package oracle

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	httpsiggo "github.com/remitly-oss/httpsig-go"
	"github.com/remitly-oss/httpsig-go/keyman"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// httpCase is a request that a library for HTTP message signatures is asked to sign or to verify.
type httpCase struct {
	Library   string              `json:"library"`
	Sign      bool                `json:"sign"`
	Algorithm httpsig.Algorithm   `json:"algorithm"`
	Key       string              `json:"key"`
	Method    string              `json:"method"`
	URL       string              `json:"url"`
	Headers   map[string]string   `json:"headers"`
	Body      string              `json:"body"`
	Covered   []string            `json:"covered"`
	Created   int64               `json:"created"`
	ours      func(httpCase) bool // what we say of it
	change    string              // what was done to it; empty: nothing
}

// httpLibraries are the implementations of others: one in Go, two in Node.
var httpLibraries = []string{"httpsig-go", "http-message-signatures", "http-message-sig"}

// TestHTTPSignaturesOfOthers: other implementations of RFC 9421 verify what the gateway signs, and we what they sign, with
// every algorithm; and both refuse it when anything that is covered was changed.
func TestHTTPSignaturesOfOthers(t *testing.T) {
	cases := append(gatewaySigned(t), othersSigned(t)...)
	var asked []httpCase
	for _, c := range cases {
		asked = append(asked, c)
		asked = append(asked, httpChanges(t, c)...)
	}
	verdicts := askHTTP(t, asked)
	for i, c := range asked {
		if theirs, ours := string(verdicts[i]) == "true", c.ours(c); theirs != (c.change == "") || ours != theirs {
			t.Errorf("%s, %s, changed %q: %s says %v, we say %v\n%v", c.Algorithm, c.URL, c.change, c.Library, theirs, ours, c.Headers)
		}
	}
	if len(asked) < 500 {
		t.Errorf("only %d requests were asked about", len(asked))
	}
}

// gatewaySigned returns deliveries of the gateway with each kind of key, for each library. An RSA key signs with PSS there;
// what that leaves is signed beneath.
func gatewaySigned(t *testing.T) (cases []httpCase) {
	for i, pair := range httpsigtest.Pairs() {
		key, err := outgoing.NewHTTPKey("k1", pair.Private)
		if err != nil {
			t.Fatal(err)
		}
		key.Algorithm = pair.Algorithm
		path := []string{"/hooks?tenant=1&x=%20y", "/hooks", ""}[i%3]
		d := deliverTo(t, path, `{"id":"evt_1","text":"é"}`, deliver.Destination{HTTPKeys: []outgoing.HTTPKey{key}})
		app := func(c httpCase) bool {
			_, err := provider.HookonceHTTP(provider.HookonceHTTPConfig{Keys: []string{pair.Public}}).Open(c.request())
			return err == nil
		}
		if pair.Algorithm == httpsig.RSAv15SHA256 {
			app = knownTo(t, pair)
		}
		for _, library := range httpLibraries {
			headers := map[string]string{}
			for name, value := range d.Headers {
				if name != "Content-Length" && name != "Accept-Encoding" {
					headers[name] = value
				}
			}
			cases = append(cases, httpCase{Library: library, Algorithm: pair.Algorithm, Key: pair.Public, Method: http.MethodPost, URL: d.URL, Headers: headers, Body: d.Body, ours: app})
		}
	}
	return cases
}

// othersSigned returns requests that each library signed with each kind of key.
func othersSigned(t *testing.T) []httpCase {
	var asked []httpCase
	for _, pair := range httpsigtest.Pairs() {
		for i, library := range httpLibraries {
			body := `{"id":"evt_1"}`
			asked = append(asked, httpCase{
				Library: library, Sign: true, Algorithm: pair.Algorithm, Key: pair.Private, Method: http.MethodPost,
				URL:  []string{"https://shop.example/in?tenant=1&x=%20y", "http://shop.example:8080/in", "https://shop.example:443"}[i],
				Body: body, Headers: map[string]string{"Content-Type": "application/json", "Idempotency-Key": "i1", "Content-Digest": httpsig.Digest([]byte(body))},
				Covered: []string{"@method", "@authority", "@path", "@query", "content-digest", "content-type", "idempotency-key"},
				Created: time.Now().Unix(), ours: knownTo(t, pair),
			})
		}
	}
	for i, answer := range askHTTP(t, asked) {
		if err := json.Unmarshal(answer, &asked[i].Headers); err != nil || asked[i].Headers["Signature"] == "" {
			t.Fatalf("%s with %s: %s, %v", asked[i].Library, asked[i].Algorithm, answer, err)
		}
		asked[i].Sign, asked[i].Key = false, httpsigtest.Of(asked[i].Algorithm).Public
	}
	return asked
}

// knownTo is an endpoint for a sender that signs with one algorithm.
func knownTo(t *testing.T, pair httpsigtest.Pair) func(httpCase) bool {
	sender := spec.Spec{
		Name: "acme", Secret: "a key", Event: spec.Extract{Key: [][]spec.Value{{"json:$.id"}}},
		Verify: []spec.Verify{{Kind: spec.HTTPSignature, Algorithms: []string{string(pair.Algorithm)}, Sign: []spec.Value{"header:Idempotency-Key"}, Claims: map[string]string{"keyid": "k1"}}},
	}
	p, err := spec.New(sender, spec.Settings{Secrets: spec.Secrets(pair.Public)})
	if err != nil {
		t.Fatal(err)
	}
	return func(c httpCase) bool {
		_, err := p.Open(c.request())
		return err == nil
	}
}

// request is the case as we get it.
func (c httpCase) request() *hookonce.Request {
	req := &hookonce.Request{Method: c.Method, URL: c.URL, Header: http.Header{}, Body: []byte(c.Body), Now: time.Now()}
	for name, value := range c.Headers {
		req.Header.Set(name, value)
	}
	return req
}

// httpChanges returns the case with each thing changed that its signature covers, and its body.
func httpChanges(t *testing.T, c httpCase) (all []httpCase) {
	with := func(what string, change func(*httpCase)) {
		other := c
		other.Headers, other.change = maps.Clone(c.Headers), what
		change(&other)
		all = append(all, other)
	}
	found, err := httpsig.Parse([]string{c.Headers["Signature-Input"]}, []string{c.Headers["Signature"]})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	for _, covered := range found[0].Covered {
		with(covered.Name, func(o *httpCase) {
			place, query, _ := strings.Cut(o.URL, "?")
			switch covered.Name {
			case "@method":
				o.Method = http.MethodPut
			case "@authority":
				o.URL = strings.Replace(o.URL, "://", "://x.", 1)
			case "@path":
				if o.URL = place + "/more"; query != "" {
					o.URL += "?" + query
				}
			case "@query":
				o.URL = place + "?" + strings.TrimPrefix(query+"&a=1", "&")
			case "content-digest":
				o.Headers["Content-Digest"] = httpsig.Digest([]byte("{}"))
			default:
				o.Headers[http.CanonicalHeaderKey(covered.Name)] += "0"
			}
		})
	}
	with("the body", func(o *httpCase) { o.Body += " " })
	with("body and digest", func(o *httpCase) { o.Body, o.Headers["Content-Digest"] = "{}", httpsig.Digest([]byte("{}")) })
	for _, name := range []string{"created", "keyid", "alg", "what is covered", "the value"} {
		with(name, func(o *httpCase) {
			in := o.Headers["Signature-Input"]
			switch name {
			case "created":
				in = strings.Replace(in, fmt.Sprint("created=", *found[0].Created), fmt.Sprint("created=", *found[0].Created-1), 1)
			case "keyid":
				in = strings.Replace(in, `keyid="k1"`, `keyid="k2"`, 1)
			case "alg":
				in = strings.Replace(in, `;alg="`+string(c.Algorithm)+`"`, ``, 1)
			case "what is covered":
				in = strings.Replace(in, ` "idempotency-key"`, "", 1)
			case "the value":
				value := slices.Clone(found[0].Value)
				value[len(value)/2] ^= 1
				o.Headers["Signature"] = found[0].Field(value)
			}
			if name != "the value" && in == o.Headers["Signature-Input"] {
				t.Fatalf("%s is not in %s", name, in)
			}
			o.Headers["Signature-Input"] = in
		})
	}
	return all
}

// askHTTP returns the answers of the libraries, in the order of the cases.
func askHTTP(t *testing.T, cases []httpCase) []json.RawMessage {
	t.Helper()
	if _, err := os.Stat("node/node_modules"); err != nil {
		t.Fatalf("%v: the libraries are not installed; run make oracle", err)
	}
	answers := make([]json.RawMessage, len(cases))
	var inNode []httpCase
	var places []int
	for i, c := range cases {
		if c.Library != "httpsig-go" {
			inNode, places = append(inNode, c), append(places, i)
			continue
		}
		var answer any = verifyHTTPInGo(c)
		if c.Sign {
			answer = signHTTPInGo(t, c)
		}
		answers[i], _ = json.Marshal(answer)
	}
	input, err := json.Marshal(inNode)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "httpsig.mjs")
	node.Dir, node.Stdin, node.Stderr = "node", bytes.NewReader(input), os.Stderr
	output, err := node.Output()
	if err != nil {
		t.Fatalf("node httpsig.mjs: %v", err)
	}
	var theirs []json.RawMessage
	if err := json.Unmarshal(output, &theirs); err != nil || len(theirs) != len(inNode) {
		t.Fatalf("node httpsig.mjs wrote %q for %d cases: %v", output, len(inNode), err)
	}
	for n, i := range places {
		answers[i] = theirs[n]
	}
	return answers
}

// wire is the case as net/http has it.
func (c httpCase) wire(t *testing.T) *http.Request {
	r, err := http.NewRequest(c.Method, c.URL, strings.NewReader(c.Body))
	if err != nil && t != nil {
		t.Fatal(err)
	}
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	return r
}

func signHTTPInGo(t *testing.T, c httpCase) map[string]string {
	key := httpsiggo.SigningKey{MetaKeyID: "k1", Secret: []byte(c.Key)}
	if block, _ := pem.Decode([]byte(c.Key)); block != nil {
		private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		key = httpsiggo.SigningKey{MetaKeyID: "k1", Key: private}
	}
	r := c.wire(t)
	err := httpsiggo.Sign(r, httpsiggo.SigningProfile{
		Algorithm: httpsiggo.Algorithm(c.Algorithm), Fields: httpsiggo.Fields(c.Covered...), Label: "theirs",
		Metadata: []httpsiggo.Metadata{httpsiggo.MetaCreated, httpsiggo.MetaKeyID, httpsiggo.MetaAlgorithm},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{}
	for name := range r.Header {
		headers[name] = r.Header.Get(name)
	}
	return headers
}

func verifyHTTPInGo(c httpCase) bool {
	key := httpsiggo.KeySpec{KeyID: "k1", Algo: httpsiggo.Algorithm(c.Algorithm), Secret: []byte(c.Key)}
	if block, _ := pem.Decode([]byte(c.Key)); block != nil {
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return false
		}
		key.PubKey, key.Secret = public, nil
	}
	label, _, _ := strings.Cut(c.Headers["Signature"], "=")
	r := c.wire(nil)
	result, err := httpsiggo.Verify(r.WithContext(context.Background()), keyman.NewKeyFetchInMemory(map[string]httpsiggo.KeySpec{"k1": key}), httpsiggo.VerifyProfile{
		SignatureLabel: label, AllowedAlgorithms: []httpsiggo.Algorithm{key.Algo},
		RequiredFields:   httpsiggo.Fields("@method", "@authority", "@path", "@query", "content-digest", "content-type", "idempotency-key"),
		RequiredMetadata: []httpsiggo.Metadata{httpsiggo.MetaCreated, httpsiggo.MetaKeyID},
	})
	return err == nil && result.Verified && c.Headers["Content-Digest"] == httpsig.Digest([]byte(c.Body))
}
