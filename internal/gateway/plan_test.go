package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// oneOfEach has a source of each kind, so that every setting has one that it counts for.
const oneOfEach = `
store: postgres://u@h/db
cell: eu
cells_map: 1
cells: [{name: eu, url: "https://eu.example:8444", weight: 1}, {name: us, url: "https://us.example:8444", weight: 1}]
cell_listen: 127.0.0.1:8444
cell_tls: {cert: cell.pem, key: cell-key.pem, ca: cells-ca.pem}
tracing: {endpoint: "http://127.0.0.1:4318", secret: env:FAKE_OTLP}
alerts:
  dashboard_url: https://hooks.example/
  heartbeat: env:FAKE_BEAT
  notify:
    - {name: oncall, url: env:FAKE_PAGER, secrets: [whsec_ZmFrZS1zZWNyZXQtb2YtYS1jaGFubmVsLWZha2U=]}
destinations:
  - {name: ledger, url: "https://ledger.internal/hooks", sign_as: provider, tls: {server_name: ledger.example}}
  - {name: mailer, url: "https://mailer.internal/", pass_headers: [X-Signature]}
sources:
  - {name: billing, provider: stripe, secrets: [whsec_fake-secret-of-it], routes: [{to: ledger, types: ["invoice.*"], where: {"json:$.livemode": "true"}}],
     reconcile: {token: env:FAKE_LIST, every: 15m, types: ["invoice.*"], with: [account=acct_fake], action: ingest}}
  - {name: shop, provider: hmac, secrets: ["00ff00ff00ff00ff"], to: "https://shop.internal/", on_store_down: open, open_types: [made]}
  - {name: orders, provider: hmac, secrets: ["00ff00ff00ff00ff"], to: "https://orders.internal/", mode: sync}
  - {name: calls, provider: twilio, secrets: [fake-secret-of-calls], url: "https://in.example/in/calls", to: "https://calls.internal/"}
  - {name: leads, provider: meta, secrets: [fake-secret-of-leads], handshakes: true, token: fake-token, to: "https://leads.internal/"}
  - {name: api, mode: idempotency, to: "https://api.internal/", idempotency: {scope: ["header:X-User"]}}
  - {name: trial, mode: observe, provider: hmac, secrets: ["00ff00ff00ff00ff"], to: "https://trial.internal/"}
  - name: crm
    provider: custom
    secrets: [fake-secret-of-crm]
    to: https://crm.internal/
    spec:
      verify: [{signature: {in: "header:X-Signature"}, sign: [body]}]
      event: {key: [["json:$.id"]], type: ["json:$.type"]}
`

// oneEnviron has what must not stand in a file.
var oneEnviron = []string{"FAKE_BEAT=https://beat.example/fake-path", "FAKE_LIST=fake-token-of-the-list", "FAKE_OTLP=fake-secret-of-tracing", "FAKE_PAGER=https://pager.example/fake-path"}

// samples are other values of texts of which not every one makes sense.
var samples = map[string]string{
	"Store.Driver": "sqlite", "Destinations.SignAs": "none", "Destinations.Order": "by_resource", "Destinations.Stale": "flag",
	"Tracing.Endpoint": "http://127.0.0.1:4319", "Sources.Trace": "trust", "Sources.Reconcile.Action": "report", "Tracing.Header": "X-Team", "Sources.Mode": "sync", "Sources.OnStoreDown": "open", "Sources.SignAs": "none", "Sources.Provider": "github",
	"Sources.HMAC.Encoding": "base64", "Sources.HMAC.Digest": "sha512", "Sources.HMAC.Form": "hex", "Sources.HMAC.Type": "json:$.other",
	"Sources.HMAC.Header": "X-Other", "Sources.URL": "https://other.example/", "Sources.AppURL": "https://other.example/", "Destinations.AppURL": "https://other.example/",
	"Sources.Routes.Where.Field": "json:$.other",
}

// countElsewhere are the settings that the plan of a gateway has no use for, and who goes by them.
var countElsewhere = map[string]string{
	"LogFormat":             "cmd/hookonce makes the logger",
	"Notify":                "Load reads the addresses: see TestTelling",
	"Heartbeat":             "Load reads the address: see TestTelling",
	"DashboardURL":          "the channels have it in their messages: see TestPeopleAreTold",
	"Development":           "cmd/hookonce says what a development gateway is for",
	"Warnings":              "they are remarks",
	"File":                  "doctor says what it looks at",
	"SecretFiles.Name":      "doctor looks at it",
	"SecretFiles.Key":       "doctor names it",
	"SecretFiles.At.Name":   "doctor names it",
	"SecretFiles.At.Line":   "doctor names it",
	"SecretFiles.At.Column": "doctor names it",
	"Inline.Key":            "doctor warns of it",
	"Inline.At.Name":        "doctor warns of it",
	"Inline.At.Line":        "doctor warns of it",
	"Inline.At.Column":      "doctor warns of it",
	"Destinations.TLS.CA":   "Load reads the file: see TestPlan_certificates",
	"Destinations.TLS.Cert": "Load reads the file: see TestPlan_certificates",
	"Destinations.TLS.Key":  "Load reads the file: see TestPlan_certificates",

	"Tracing.TLS.CA":         "Load reads the file, as that of destinations",
	"Tracing.TLS.Cert":       "a collector asks for a header",
	"Tracing.TLS.Key":        "a collector asks for a header",
	"Tracing.TLS.ServerName": "a collector has the name in its URL",

	"AdminTLS.CA":         "the listener asks nobody for a certificate",
	"AdminTLS.Cert":       "Load reads the file: see TestAdminTLS",
	"AdminTLS.Key":        "Load reads the file: see TestAdminTLS",
	"AdminTLS.ServerName": "the listener goes by its certificate",

	"CellTLS.CA":         "Load reads the file, as that of destinations",
	"CellTLS.Cert":       "Load reads the file, as that of destinations",
	"CellTLS.Key":        "Load reads the file, as that of destinations",
	"CellTLS.ServerName": "cells are called by the host of their URL",

	"Destinations.TLS.ServerName": "Load puts it beside the certificates: see TestPlan_certificates",
}

// Every field of the configuration changes what the gateway goes by: none is wired to nothing.
func TestPlan_everySetting(t *testing.T) {
	testskip.Race(t)
	t.Parallel()
	before := planned(t, parsed(t, oneOfEach))
	if again := planned(t, parsed(t, oneOfEach)); again != before {
		t.Fatal("the same configuration makes another plan each time")
	}
	counts := map[string]bool{}
	eachLeaf(reflect.ValueOf(parsed(t, oneOfEach)).Elem(), "", nil, func(name string, path []int) {
		if counts[name] || countElsewhere[name] != "" {
			return
		}
		w, err := wire(changed(t, name, path), nil)
		counts[name] = err == nil && dumpPlan(w) != before
	})
	for name, is := range counts {
		if !is {
			t.Errorf("another value of %s changes nothing of what the gateway goes by; put it into the plan, or say in this test who goes by it", name)
		}
	}
	for name := range countElsewhere {
		if _, ok := counts[name]; ok {
			t.Errorf("%s is said to count countElsewhere, and counts here", name)
		}
	}
	if len(counts) < 80 {
		t.Errorf("only %d settings were tried", len(counts))
	}
}

// A source whose settings change keeps its provider, with the keys that it has fetched of its sender, unless another one
// would be made of them: whatever the setting is.
func TestPlan_keepsProviders(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	of := func(p *plan, source string) hookonce.Provider {
		for _, s := range p.ingest.Sources {
			if s.Name == source {
				return s.Provider
			}
		}
		return nil
	}
	written := func(p hookonce.Provider) string {
		var b strings.Builder
		dump(&b, reflect.ValueOf(p), map[uintptr]bool{})
		return b.String()
	}
	before, err := newPlan(parsed(t, oneOfEach), nil)
	if err != nil {
		t.Fatal(err)
	}
	makesAnother := map[string]bool{}
	eachLeaf(reflect.ValueOf(parsed(t, oneOfEach)).Elem(), "", nil, func(name string, path []int) {
		if !strings.HasPrefix(name, "Sources.") || name == "Sources.Name" || makesAnother[name] {
			return
		}
		cfg := changed(t, name, path)
		source := cfg.Sources[path[1]].Name
		anew, err := newPlan(cfg, nil)
		if err != nil { // no value that makes sense for this source
			return
		}
		was, made := of(before, source), of(anew, source)
		if was == nil || made == nil { // in a mode without a provider
			return
		}
		after, err := newPlan(cfg, before)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		another, kept := written(made) != written(was), of(after, source) == was
		if another == kept {
			t.Errorf("another value of %s: of %s another provider is made: %t, the one that was is kept: %t", name, source, another, kept)
		}
		makesAnother[name] = another
	})
	for name, want := range map[string]bool{
		"Sources.Rate": false, "Sources.Allow": false, "Sources.To": false, "Sources.Routes.Types": false, "Sources.Retention.Bodies": false,
		"Sources.Provider": true, "Sources.Secrets": true, "Sources.URL": true, "Sources.Token": true, "Sources.Tolerance": true,
		"Sources.Handshakes": true, "Sources.HMAC.Header": true, "Sources.Spec": true,
	} {
		if is, tried := makesAnother[name]; !tried || is != want {
			t.Errorf("%s was tried: %t, and makes another provider: %t; want %t", name, tried, is, want)
		}
	}
}

// So do those whose keys are fetched, which have functions in them, and of which no two can be compared.
func TestPlan_keepsProvidersThatFetch(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string][2]string{
		"aws-sns":       {"arn:aws:sns:eu-central-1:000000000000:fake", "arn:aws:sns:eu-central-1:000000000000:other"},
		"paypal":        {"FAKE-WEBHOOK-ID", "OTHER-WEBHOOK-ID"},
		"plaid":         {"production:fake-client:fake-secret", "production:fake-client:other-secret"},
		"google-pubsub": {"fake@example.iam.gserviceaccount.com:https://app.example/", "other@example.iam.gserviceaccount.com:https://app.example/"},
		"kinde":         {"https://fake.kinde.com", "https://other.kinde.com"},
	} {
		plan := func(before *plan, secret, more string) *plan {
			t.Helper()
			p, err := newPlan(parsed(t, fmt.Sprintf(`sources: [{name: fetched, provider: %s, secrets: [%q], to: "https://app.internal/"%s}]`, name, secret, more)), before)
			if err != nil {
				t.Fatal(name, err)
			}
			return p
		}
		before := plan(nil, secrets[0], "")
		if after := plan(before, secrets[0], ", rate: 7"); after.ingest.Sources[0].Provider != before.ingest.Sources[0].Provider {
			t.Errorf("%s: another rate makes another provider", name)
		}
		if after := plan(before, secrets[1], ""); after.ingest.Sources[0].Provider == before.ingest.Sources[0].Provider {
			t.Errorf("%s: another secret makes no other provider", name)
		}
	}
}

// changed is oneOfEach with another value of the setting of that name, which is at path.
func changed(t *testing.T, name string, path []int) *config.Config {
	t.Helper()
	cfg := parsed(t, oneOfEach)
	leaf := reflect.ValueOf(cfg).Elem()
	for _, i := range path {
		if leaf.Kind() == reflect.Slice {
			leaf = leaf.Index(i)
		} else {
			leaf = leaf.Field(i)
		}
	}
	change(t, name, leaf)
	return cfg
}

// What a file of certificates holds is in the plan, and not its name.
func TestPlan_certificates(t *testing.T) {
	t.Parallel()
	cert, key := selfSigned(t)
	read := func(name string) ([]byte, error) {
		if data, ok := map[string][]byte{"cert.pem": cert, "key.pem": key}[name]; ok {
			return data, nil
		}
		return readCellFile(name)
	}
	plain := strings.Replace(oneOfEach, "server_name: ledger.example", "server_name: ledger.example%s", 1)
	before := planned(t, parsed(t, fmt.Sprintf(plain, "")))
	for _, files := range []string{", ca: cert.pem", ", cert: cert.pem, key: key.pem", ".org"} {
		cfg, err := config.Load(config.Input{Path: "hookonce.yaml", Data: []byte(fmt.Sprintf(plain, files)), Environ: oneEnviron, ReadFile: read})
		if err != nil {
			t.Fatal(err)
		}
		if planned(t, cfg) == before {
			t.Errorf("tls: {%s} changes nothing", files)
		}
	}
}

// Sources tell for how long their senders send an event again, where that is known.
func TestSourcesTellWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, s := range apiSources(parsed(t, oneOfEach)) {
		want := map[string][2]int64{"billing": {3 * 86400, 30 * 86400}, "shop": {}, "api": {}, "crm": {}}
		if w, ok := want[s.Name]; ok && (s.SendsAgain != w[0] || s.SentOnDemand != w[1]) {
			t.Errorf("%s: %d s, %d s on demand; want %v", s.Name, s.SendsAgain, s.SentOnDemand, w)
		}
	}
}

// The order among what may bound a body: the setting, what the provider is known to send, the default of the library.
func TestPlan_largestBody(t *testing.T) {
	t.Parallel()
	const set, known = 3 << 20, 7 << 20
	for _, c := range []struct {
		name     string
		setting  int64
		provider hookonce.Provider
		want     int64
	}{
		{"the setting, above all", set, bounded{bytes: known}, set},
		{"the setting of a service", set, nil, set},
		{"what the provider sends", 0, bounded{bytes: known}, known},
		{"the default of a sender", 0, bounded{}, hookonce.DefaultMaxBody},
		{"the default of a service", 0, nil, hookonce.DefaultMaxBody},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := maxBody(&config.Source{MaxBody: c.setting}, c.provider); got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}

// bounded is a provider that sends bodies of so many bytes at most. Zero: that is not known.
type bounded struct {
	hookonce.Provider
	bytes int64
}

func (b bounded) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "bounded", MaxBody: b.bytes}
}

func parsed(t *testing.T, file string) *config.Config {
	t.Helper()
	cfg, err := config.Load(config.Input{Path: "hookonce.yaml", Data: []byte(file), Environ: oneEnviron, ReadFile: readCellFile})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// oneCertificate are a certificate and its key. They are made once: what they hold is in the plan.
var oneCertificate = sync.OnceValue(func() (made struct {
	cert, key []byte
	err       error
}) {
	made.cert, made.key, made.err = newCertificate()
	return made
})

// readCellFile reads the files that [oneOfEach] names.
func readCellFile(name string) ([]byte, error) {
	made := oneCertificate()
	switch name {
	case "cell.pem", "cells-ca.pem":
		return made.cert, made.err
	case "cell-key.pem":
		return made.key, made.err
	}
	return os.ReadFile(name)
}

func planned(t *testing.T, cfg *config.Config) string {
	t.Helper()
	w, err := wire(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dumpPlan(w)
}

// dumpPlan writes down a plan without the configuration that it was made of.
func dumpPlan(w *wiring) string {
	p := w.plan
	p.cfg = nil
	var b strings.Builder
	dump(&b, reflect.ValueOf(p), map[uintptr]bool{})
	return b.String()
}

// eachLeaf calls f for each exported field that is no group of others, and for each of the elements of
// lists of groups.
func eachLeaf(v reflect.Value, name string, path []int, f func(name string, path []int)) {
	switch is := v.Interface().(type) {
	case settings.Secret:
		f(name, path)
		return
	case []config.Route:
		if len(is) == 0 {
			return // another source has some
		}
	}
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			inner := strings.TrimPrefix(name+"."+field.Name, ".")
			if field.Anonymous {
				inner = name
			}
			if field.IsExported() {
				eachLeaf(v.Field(i), inner, append(slices.Clone(path), i), f)
			}
		}
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem() != reflect.TypeFor[settings.Secret]():
		for i := range v.Len() {
			eachLeaf(v.Index(i), name, append(slices.Clone(path), i), f)
		}
	default:
		f(name, path)
	}
}

// change gives a field a value that it does not have.
func change(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch is := v.Addr().Interface().(type) {
	case *settings.Secret:
		other := "fake-secret-of-another"
		if strings.HasPrefix(is.Reveal(), "https://") {
			other = is.Reveal() + "x"
		}
		*is = settings.Literal(other)
		return
	case *[]settings.Secret:
		*is = append(slices.Clone(*is), settings.Literal("ff00ff00ff00ff00"))
		return
	case *[]netip.Prefix:
		*is = append(slices.Clone(*is), netip.MustParsePrefix("192.0.2.0/24"))
		return
	case *[]config.Header:
		*is = append(slices.Clone(*is), config.Header{Name: "X-Other", Value: settings.Literal("other")})
		return
	case *[]config.HTTPKey:
		*is = append(slices.Clone(*is), config.HTTPKey{ID: "other", Key: settings.Literal("fake-secret-of-signatures-of-40-characters")})
		return
	case *[]config.AdminToken:
		*is = append(slices.Clone(*is), config.AdminToken{Name: "ada", Token: settings.Literal("fake-token-of-ada"), Role: config.RoleRead})
		return
	case **spec.Spec:
		if *is != nil {
			other := **is
			other.Title = "Other"
			*is = &other
		}
		return
	case *time.Duration:
		*is += 1500 * time.Millisecond
		return
	}
	switch v.Kind() {
	case reflect.String:
		other, ok := samples[name]
		if !ok {
			other = v.String() + "x"
		}
		v.SetString(other)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Slice:
		one := reflect.New(v.Type().Elem()).Elem()
		switch one.Kind() {
		case reflect.String:
			one.SetString("json:$.other")
		case reflect.Int:
			one.SetInt(404)
		}
		v.Set(reflect.Append(v.Slice3(0, v.Len(), v.Len()), one))
	default:
		t.Errorf("%s: no way is known to change a %s", name, v.Type())
	}
}

// dump writes down a value, what is not exported included. Functions and channels are passed over.
func dump(b *strings.Builder, v reflect.Value, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			b.WriteString("*")
			return
		}
		seen[v.Pointer()] = true
		dump(b, v.Elem(), seen)
		delete(seen, v.Pointer())
	case reflect.Interface:
		if !v.IsNil() {
			b.WriteString(v.Elem().Type().String())
			dump(b, v.Elem(), seen)
		}
	case reflect.Struct:
		b.WriteString("{")
		for i := range v.NumField() {
			b.WriteString(v.Type().Field(i).Name + ":")
			dump(b, v.Field(i), seen)
			b.WriteString(" ")
		}
		b.WriteString("}")
	case reflect.Slice, reflect.Array:
		b.WriteString("[")
		for i := range v.Len() {
			dump(b, v.Index(i), seen)
			b.WriteString(" ")
		}
		b.WriteString("]")
	case reflect.Map:
		var all []string
		for key, value := range v.Seq2() {
			var one strings.Builder
			dump(&one, key, seen)
			one.WriteString("=")
			dump(&one, value, seen)
			all = append(all, one.String())
		}
		slices.Sort(all)
		fmt.Fprintf(b, "%q", all)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
	case reflect.String:
		b.WriteString(v.String())
	default:
		fmt.Fprint(b, v) // reads what is not exported as well
	}
}

// selfSigned returns a certificate that signs itself, and its key, in PEM form.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	cert, key, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// newCertificate makes one that is good for an hour.
func newCertificate() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

// A sender waits for a store that does not answer as long as docs/store-outage.md says, whatever the configuration.
func TestPlan_patienceWithTheStore(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]*config.Config{"one of each": parsed(t, oneOfEach), "the defaults": configured(sqliteStore(t), "http://app.example/")} {
		for i := range cfg.Sources {
			cfg.Sources[i].Deadline = time.Minute
		}
		p, err := newPlan(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.ingest.AcceptTimeout; got != 5*time.Second {
			t.Errorf("%s: %v, want 5 s", name, got)
		}
	}
}

// Page one knows which sources are delivered past the store.
func TestPlan_openSources(t *testing.T) {
	t.Parallel()
	p, err := newPlan(parsed(t, oneOfEach), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range overviewSources(p) {
		if s.Open != (s.Name == "shop") {
			t.Errorf("%s: open: %t", s.Name, s.Open)
		}
	}
}
