package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// fetchedVector is a [vector] of a sender whose keys are fetched, or come with the request under a root of its own.
type fetchedVector struct {
	vector
	KeysURL string `json:"keys_url"`
	Keys    string `json:"keys"`
	Root    string `json:"root"`
}

func fetchedVectors(t testing.TB, name string) []fetchedVector {
	t.Helper()
	text, err := os.ReadFile("testdata/fetched.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []fetchedVector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(v fetchedVector) bool { return name != "" && v.Provider != name })
	if len(all) == 0 {
		t.Fatalf("no vector of %s", name)
	}
	return all
}

// net serves the keys at the one address where the sender has them.
func (v fetchedVector) net() *net {
	return &net{serve: func(req *http.Request) (int, string) {
		if req.Method != http.MethodGet || req.URL.String() != v.KeysURL || len(req.Header) > 0 {
			return http.StatusNotFound, ""
		}
		return http.StatusOK, v.Keys
	}}
}

// over returns the provider with those secrets, which fetches over that network.
func (v fetchedVector) over(t testing.TB, n *net, secrets ...string) *spec.Provider {
	t.Helper()
	code := map[string]func(http.RoundTripper) spec.Scheme{
		"google-pubsub": scheme.GooglePubSub, "google-play": scheme.GooglePlay, "kinde": scheme.Kinde, "azure-event-grid-entra": scheme.AzureEventGrid,
		"app-store": func(http.RoundTripper) spec.Scheme { return scheme.AppStore([]byte(v.Root)) },
	}[v.Provider]
	return withScheme(t, v.Provider, code(n), secrets...)
}

func TestFetchedVectors(t *testing.T) {
	keys := map[string]string{
		"google-pubsub": "136969346945", "google-play": "136969346945", "kinde": "event_1234567890", "app-store": "-4000-8000-0000|002e14d5-51f5-4503-b5a8-c3a1af68eb20",
		"azure-event-grid-entra": "3:e-1",
	}
	for _, v := range fetchedVectors(t, "") {
		t.Run(v.Provider, func(t *testing.T) {
			n := v.net()
			p := v.over(t, n, v.Secret)
			for range 3 {
				ev := one(t, p, v.request())
				if !slices.ContainsFunc(strings.Split(keys[v.Provider], "|"), func(part string) bool { return strings.Contains(ev.Key, part) }) || ev.Type == "" || ev.Time.IsZero() {
					t.Errorf("%s: key %q, type %q, time %v", v.Source, ev.Key, ev.Type, ev.Time)
				}
				if covered := v.Provider == "app-store" || v.Provider == "kinde"; ev.KeySigned != covered {
					t.Errorf("the key is signed: %v", ev.KeySigned)
				}
			}
			if n.asked.Load() > 1 {
				t.Errorf("the keys were fetched %d times", n.asked.Load())
			}
		})
	}
}

// TestMutatedFetchedVectors changes every byte of the token, and of the body where the token is that.
func TestMutatedFetchedVectors(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	for _, v := range fetchedVectors(t, "") {
		t.Run(v.Provider, func(t *testing.T) {
			p := v.over(t, v.net(), v.Secret)
			d, err := p.Open(v.request())
			if err != nil {
				t.Fatal(err)
			}
			for i := range v.Headers["Authorization"] {
				changed := []byte(v.Headers["Authorization"])
				changed[i] ^= 1
				req := v.request()
				req.Header.Set("Authorization", string(changed))
				if d, err := p.Open(req); err == nil { // a token may name another key: then it cannot be decided
					t.Fatalf("with %s it is accepted: %v", changed, d.Events[0].Key)
				}
			}
			for i := range v.Body {
				req := v.request()
				req.Body[i] ^= 1
				if _, err := p.Open(req); err == nil && d.Proof.Covers == string(spec.CoversBody) {
					t.Fatalf("with another byte %d of the body it is accepted", i)
				}
			}
		})
	}
}

// TestTokensForOthers: a genuine token says who sends it and to whom, and that is compared.
func TestTokensForOthers(t *testing.T) {
	for _, c := range []struct{ name, secret string }{
		{"google-pubsub", "other@example.iam.gserviceaccount.com:https://shop.example/hooks"},
		{"google-pubsub", "push@example.iam.gserviceaccount.com:https://shop.example/other"},
		{"google-play", "push@example.iam.gserviceaccount.com:https://shop.example"},
		{"azure-event-grid-entra", "00000000-0000-4000-8000-000000001001:api://other"},
		{"app-store", "production:com.example.other"}, {"app-store", "sandbox:com.example.shop"},
	} {
		v := fetchedVectors(t, c.name)[0]
		if why := reason(t, v.over(t, v.net(), c.secret), v.request()); why.Reason != hookonce.ReasonSignatureMismatch || !strings.Contains(why.Detail, "genuine") {
			t.Errorf("%s: %v", c.secret, why)
		}
		one(t, v.over(t, v.net(), c.secret, v.Secret), v.request())
	}
}

// TestTokensRunOut: within the minute that clocks may differ.
func TestTokensRunOut(t *testing.T) {
	for _, name := range []string{"google-pubsub", "azure-event-grid-entra"} {
		v := fetchedVectors(t, name)[0]
		p := v.over(t, v.net(), v.Secret)
		req := v.request()
		req.Now = time.Unix(v.Now+3600+59, 0)
		one(t, p, req)
		req.Now = time.Unix(v.Now+3600+60, 0)
		if why := reason(t, p, req); why.Reason != hookonce.ReasonTimestampOld {
			t.Errorf("%s: %v", name, why)
		}
	}
}

// TestNoKeysNoDecision: that the keys cannot be had says nothing about the request.
func TestNoKeysNoDecision(t *testing.T) {
	for _, name := range []string{"google-pubsub", "google-play", "kinde", "azure-event-grid-entra"} {
		v := fetchedVectors(t, name)[0]
		for what, n := range map[string]*net{
			"an outage": {serve: func(*http.Request) (int, string) { return http.StatusBadGateway, "" }},
			"another set": {serve: func(*http.Request) (int, string) {
				return http.StatusOK, strings.ReplaceAll(v.Keys, `"kid":"`, `"kid":"other-`)
			}},
			"no set": {serve: func(*http.Request) (int, string) { return http.StatusOK, "<html>" }},
		} {
			if _, err := v.over(t, n, v.Secret).Open(v.request()); err == nil || errors.Is(err, hookonce.ErrUnverified) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}

// TestStrangersFetchNothing: what is no token of the sender's kind is refused before anything is fetched.
func TestStrangersFetchNothing(t *testing.T) {
	for _, name := range []string{"google-pubsub", "kinde", "azure-event-grid-entra"} {
		v := fetchedVectors(t, name)[0]
		n := v.net()
		p := v.over(t, n, v.Secret)
		for _, token := range []string{"", "x", "a.b.c", "e30.e30.AA", "eyJhbGciOiJub25lIiwia2lkIjoiYSJ9.e30.AA", "eyJhbGciOiJSUzI1NiJ9.e30.AA"} {
			req := v.request()
			req.Header.Set("Authorization", "Bearer "+token)
			if name == "kinde" {
				req.Body = []byte(token)
			}
			reason(t, p, req)
		}
		if n.asked.Load() > 0 {
			t.Errorf("%s: %d fetches", name, n.asked.Load())
		}
	}
}

// TestSecretsOfFetchedKeys: what becomes part of an address is what it says.
func TestSecretsOfFetchedKeys(t *testing.T) {
	for name, secrets := range map[string][]string{
		"google-pubsub":          {"", "a@b", "https://shop.example:x", "push@example.com:"},
		"azure-event-grid-entra": {"", "api://example", "common:api://example", "00000000-0000-4000-8000-00000000100/:api://example", "00000000-0000-4000-8000-000000001001:"},
		"kinde":                  {"", "http://example.kinde.com", "example", "https://example.kinde.com/path", "https://user@example.kinde.com", "https://example.kinde.com:8443", "127.0.0.1", "https://-a.example"},
		"app-store":              {"", "com.example.shop", "production:", "Production:com.example.shop", "xcode:com.example.shop"},
	} {
		for _, secret := range secrets {
			if _, err := Build(name, spec.Settings{Secrets: spec.Secrets(secret)}); !errors.Is(err, spec.ErrSecret) {
				t.Errorf("%s: %q: %v", name, secret, err)
			}
		}
	}
	for _, domain := range []string{"example.kinde.com", "https://example.kinde.com/", "https://auth.shop.example"} {
		Kinde(domain)
	}
}

// TestKindeRefusesTokensOfUsers: the same keys sign them, and whoever logs in has one.
func TestKindeRefusesTokensOfUsers(t *testing.T) {
	key := newRSA(t)
	public, err := jose.JSONWebKey{Key: &key.PublicKey, KeyID: "a:b", Use: "sig"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	n := &net{serve: func(*http.Request) (int, string) { return http.StatusOK, `{"keys":[` + string(public) + `]}` }}
	p := withScheme(t, "kinde", scheme.Kinde(n), "https://example.kinde.com")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "a:b"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]bool{
		`{"event_id":"event_1","type":"user.created","data":{}}`:                                      true,
		`{"event_id":"event_1","type":"user.created","data":{},"iss":"https://example.kinde.com/"}`:   true,
		`{"event_id":"event_1","type":"user.created","data":{},"iss":"https://another.kinde.com"}`:    false,
		`{"iss":"https://example.kinde.com","sub":"kp_1","aud":[],"exp":1770095106,"scp":["openid"]}`: false,
		`{"event_id":"event_1","type":"user.created"}`:                                                false,
		`{"event_id":"","type":"user.created","data":{}}`:                                             false,
		`[]`: false,
	} {
		jws, err := signer.Sign([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		token, err := jws.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		req := &hookonce.Request{Header: http.Header{"Content-Type": {"application/jwt"}}, Body: []byte(token), Now: now}
		if want {
			if ev := one(t, p, req); ev.Key != "event_1" || ev.Type != "user.created" || string(ev.Body) != token {
				t.Errorf("%+v", ev)
			}
		} else if why := reason(t, p, req); !strings.Contains(why.Detail, "genuine") {
			t.Errorf("%s: %v", payload, why)
		}
	}
}

// TestEventGridOnlyFromEventGrid: anybody in the tenant can have a token for the application.
func TestEventGridOnlyFromEventGrid(t *testing.T) {
	key := newRSA(t)
	public, err := jose.JSONWebKey{Key: &key.PublicKey, KeyID: "k", Use: "sig"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const tenant, app = "00000000-0000-4000-8000-000000001001", "4962773b-9cdb-44cf-a8bf-237846a00ab7"
	n := &net{serve: func(*http.Request) (int, string) { return http.StatusOK, `{"keys":[` + string(public) + `]}` }}
	p := withScheme(t, "azure-event-grid-entra", scheme.AzureEventGrid(n), tenant+":api://example")
	for claims, want := range map[string]string{
		`"iss":"https://sts.windows.net/` + tenant + `/","aud":"api://example","appid":"` + app + `"`:                                                "",
		`"iss":"https://sts.windows.net/` + tenant + `/","aud":"api://example","appid":"00000000-0000-4000-8000-000000000002"`:                       "Event Grid",
		`"iss":"https://sts.windows.net/` + tenant + `/","aud":"api://example"`:                                                                      "Event Grid",
		`"iss":"https://sts.windows.net/` + strings.Replace(tenant, "1001", "1002", 1) + `/","aud":"api://example","appid":"` + app + `"`:            "tenant",
		`"iss":"https://sts.windows.net/` + tenant + `/","aud":["api://example","api://other"],"appid":"` + app + `"`:                                "audience",
		`"iss":"https://login.microsoftonline.com/` + tenant + `/v2.0","aud":"api://example","azp":"` + app + `","nbf":` + fmt.Sprint(now.Unix()+61): "nbf",
	} {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		jws, err := signer.Sign(fmt.Appendf(nil, `{"exp":%d,%s}`, now.Unix()+3600, claims))
		if err != nil {
			t.Fatal(err)
		}
		token, err := jws.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		req := &hookonce.Request{Header: http.Header{"Authorization": {"Bearer " + token}}, Body: []byte(`[{"id":"1","topic":"t"}]`), Now: now}
		if want == "" {
			one(t, p, req)
		} else if why := reason(t, p, req); !strings.Contains(why.Detail, want) {
			t.Errorf("%s: %v", claims, why)
		}
	}
}
