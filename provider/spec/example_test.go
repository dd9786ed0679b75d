package spec_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// The sender signs <time>.<body>, as in X-Acme-Signature: t=1770091506,v1=fc88...
func Example() {
	acme := spec.Spec{
		Name: "acme",
		Verify: []spec.Verify{{
			Signature: spec.Signature{In: "header:X-Acme-Signature", Split: ",", Prefix: "v1="},
			Time:      &spec.Timestamp{In: "part:t=", Past: 5 * time.Minute, Future: 5 * time.Minute},
			Sign:      []spec.Value{"ts", "const:.", "body"},
		}},
		Event:  spec.Extract{Key: [][]spec.Value{{"json:$.id"}}, Type: []spec.Value{"json:$.type"}},
		Limits: spec.Limits{Retry: 72 * time.Hour},
	}
	p, err := spec.New(acme, spec.Settings{Secrets: spec.Secrets("acme-fake-secret")})
	if err != nil {
		panic(err) // what is unsafe, why, and what to do
	}
	d, err := p.Open(&hookonce.Request{
		Method: http.MethodPost,
		Header: http.Header{"X-Acme-Signature": {"t=1770091506,v1=fc888279091dfe741600139825de193b9d7fbb8593404369b738456bb02893b7"}},
		Body:   []byte(`{"id":"evt_1","type":"order.paid","at":1770091500,"order":{"number":"1001"}}`),
		Now:    time.Unix(1770091507, 0),
	})
	fmt.Println(d.Events[0].Type, d.Events[0].Key, d.Events[0].KeySigned, err)
	fmt.Println("keys are kept for", spec.FormatDuration(p.Spec().Limits.Keep()))
	// Output:
	// order.paid evt_1 true <nil>
	// keys are kept for 6d
}

func ExampleProvider_Sign() {
	p, err := spec.New(spec.Spec{
		Name: "acme",
		Verify: []spec.Verify{{
			Signature: spec.Signature{In: "header:X-Acme-Signature", Prefix: "sha256="},
			Sign:      []spec.Value{"body"},
		}},
	}, spec.Settings{Secrets: spec.Secrets("acme-fake-secret")})
	if err != nil {
		panic(err)
	}
	req := &hookonce.Request{Method: http.MethodPost, Body: []byte(`{"id":"evt_1"}`), Now: time.Now()}
	if err := p.Sign(req); err != nil {
		panic(err)
	}
	d, err := p.Open(req)
	fmt.Println(req.Header.Get("X-Acme-Signature"))
	fmt.Println(len(d.Events), err)
	// Output:
	// sha256=f1911b45e8918adbf7810d9c8de89e82151b727a1b2cca49ec80efd1d4ef448a
	// 1 <nil>
}

func ExampleFormatDuration() {
	fmt.Println(spec.FormatDuration(72*time.Hour), spec.FormatDuration(5*time.Minute), spec.FormatDuration(90*time.Second))
	// Output: 3d 5m 1m30s
}

// Two secrets while one replaces the other, and nothing of them in a log.
func ExampleSecrets() {
	secrets := spec.Secrets("whsec_new", "whsec_old")
	secrets[1].Until = time.Date(2026, 2, 4, 0, 0, 0, 0, time.UTC)
	fmt.Println(len(secrets), secrets[0])
	// Output: 2 {a secret}
}
