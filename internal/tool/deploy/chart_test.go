package deploy

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	apiyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../../deploy/helm/hookonce"

// onPostgres are values that are complete: what a person with a database would write.
const onPostgres = `
image: {repository: registry.internal/hookonce, tag: v1.2.3}
store: {postgres: {secret: hookonce-db}}
secrets:
  - {name: stripe, secret: stripe, key: webhook-secret}
  - {name: prometheus, secret: hookonce-admin, key: prometheus}
config:
  admin_tokens:
    - {name: prometheus, token: "file:/run/secrets/hookonce/prometheus"}
  sources:
    - name: billing
      provider: stripe
      secrets: ["file:/run/secrets/hookonce/stripe"]
      to: http://billing.shop.svc/webhooks
`

// objects are what the chart asks a cluster for.
type objects struct {
	deployment apps.Deployment
	services   []core.Service
	configMap  *core.ConfigMap
	claim      *core.PersistentVolumeClaim
	budget     *policy.PodDisruptionBudget
	network    *networking.NetworkPolicy
	monitor    *monitoring.ServiceMonitor
}

// render does what helm template does with values on top of others.
func render(t *testing.T, values ...string) (*objects, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, text := range values {
		var v map[string]any
		if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		all = util.MergeTables(v, all)
	}
	release := common.ReleaseOptions{Name: "shop", Namespace: "webhooks", IsInstall: true}
	full, err := util.ToRenderValues(chart, all, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, full)
	if err != nil {
		return nil, err
	}
	o := new(objects)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			o.decode(t, name, files[name])
		}
	}
	return o, nil
}

// decode reads the documents of a file. A field that Kubernetes does not know is a fault: it would be ignored there.
func (o *objects) decode(t *testing.T, name, text string) {
	t.Helper()
	for docs := apiyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ Kind, APIVersion string }
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, doc)
		}
		if head.Kind == "" {
			continue // a template that renders nothing
		}
		into := map[string]func() any{
			"apps/v1 Deployment":                      func() any { return &o.deployment },
			"v1 Service":                              func() any { o.services = append(o.services, core.Service{}); return &o.services[len(o.services)-1] },
			"v1 ConfigMap":                            func() any { o.configMap = new(core.ConfigMap); return o.configMap },
			"v1 PersistentVolumeClaim":                func() any { o.claim = new(core.PersistentVolumeClaim); return o.claim },
			"policy/v1 PodDisruptionBudget":           func() any { o.budget = new(policy.PodDisruptionBudget); return o.budget },
			"networking.k8s.io/v1 NetworkPolicy":      func() any { o.network = new(networking.NetworkPolicy); return o.network },
			"monitoring.coreos.com/v1 ServiceMonitor": func() any { o.monitor = new(monitoring.ServiceMonitor); return o.monitor },
		}[head.APIVersion+" "+head.Kind]
		if into == nil {
			t.Fatalf("%s: nothing is known of %s %s", name, head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict(doc, into()); err != nil {
			t.Errorf("%s: %v\n%s", name, err, doc)
		}
	}
}

func mustRender(t *testing.T, values ...string) *objects {
	t.Helper()
	o, err := render(t, values...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Two gateways on a database: what keeps them apart, what stops them without a refused request, and who may connect.
func TestChartOnPostgres(t *testing.T) {
	o := mustRender(t, onPostgres, `{serviceMonitor: {enabled: true, token: {secret: hookonce-admin, key: prometheus}}, networkPolicy: {adminFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}}`)
	spec := &o.deployment.Spec
	pod := &spec.Template.Spec
	gateway := &pod.Containers[0]
	if *spec.Replicas != 2 || spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Errorf("%d replicas, of which a rollout takes %v away", *spec.Replicas, spec.Strategy.RollingUpdate.MaxUnavailable)
	}
	if o.budget == nil || o.budget.Spec.MaxUnavailable.IntValue() != 1 || !maps.Equal(o.budget.Spec.Selector.MatchLabels, spec.Selector.MatchLabels) {
		t.Errorf("the disruption budget is %+v", o.budget)
	}
	for label, value := range spec.Selector.MatchLabels {
		if spec.Template.Labels[label] != value {
			t.Errorf("pods have no label %s=%s", label, value)
		}
	}
	s := gateway.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 65532 || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
		t.Errorf("a pod has more rights than it needs: %+v %+v", pod.SecurityContext, s)
	}
	if gateway.ReadinessProbe.HTTPGet.Path != "/readyz" || gateway.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Error("the probes ask for something else")
	}
	env := variables(gateway)
	if env["HOOKONCE_SHUTDOWN_DELAY"] != "10s" || env["HOOKONCE_SHUTDOWN_TIMEOUT"] != "40s" || *pod.TerminationGracePeriodSeconds != 50 {
		t.Errorf("a stop has %v, and is killed after %d s", env, *pod.TerminationGracePeriodSeconds)
	}
	if refs := references(gateway); !maps.Equal(refs, map[string]string{"HOOKONCE_STORE": "hookonce-db url"}) {
		t.Errorf("of Secrets are %v", refs)
	}
	withStandby := mustRender(t, onPostgres, `{store: {postgres: {read: {secret: standby, key: dsn}}}}`)
	if refs := references(&withStandby.deployment.Spec.Template.Spec.Containers[0]); !maps.Equal(refs, map[string]string{"HOOKONCE_STORE": "hookonce-db url", "HOOKONCE_STORE_READ": "standby dsn"}) {
		t.Errorf("with a standby, of Secrets are %v", refs)
	}
	if o.claim != nil {
		t.Error("there is a volume for SQLite")
	}
	ports := map[string]bool{}
	for _, svc := range o.services {
		ports[svc.Name+" "+svc.Spec.Ports[0].TargetPort.String()] = true
		if !maps.Equal(svc.Spec.Selector, spec.Selector.MatchLabels) {
			t.Errorf("%s selects %v", svc.Name, svc.Spec.Selector)
		}
	}
	if !maps.Equal(ports, map[string]bool{"shop-hookonce webhooks": true, "shop-hookonce-admin admin": true}) {
		t.Errorf("services lead to %v", ports)
	}
	if in := o.network.Spec.Ingress; len(in) != 2 || in[0].From != nil || in[0].Ports[0].Port.String() != "webhooks" || in[1].From == nil || in[1].Ports[0].Port.String() != "admin" {
		t.Errorf("the network lets in %+v", in)
	}
	var admin *core.Service
	for i := range o.services {
		if o.services[i].Labels["app.kubernetes.io/component"] == "admin" {
			admin = &o.services[i]
		}
	}
	for label, value := range o.monitor.Spec.Selector.MatchLabels {
		if admin.Labels[label] != value {
			t.Errorf("Prometheus looks for a service with %s=%s", label, value)
		}
	}
	if c := o.monitor.Spec.Endpoints[0].Authorization.Credentials; c.Name != "hookonce-admin" || c.Key != "prometheus" {
		t.Errorf("Prometheus shows %+v", c)
	}
}

// Without peers nobody may ask the admin listener.
func TestChartLetsNobodyAsk(t *testing.T) {
	o := mustRender(t, onPostgres)
	if in := o.network.Spec.Ingress; len(in) != 1 || in[0].Ports[0].Port.String() != "webhooks" {
		t.Errorf("the network lets in %+v", in)
	}
	if o.monitor != nil {
		t.Error("there is a ServiceMonitor where there may be no operator")
	}
}

const onSQLite = `{replicas: 1, store: {postgres: {secret: ""}, sqlite: {enabled: true}}}`

func TestChartOnSQLite(t *testing.T) {
	o := mustRender(t, onPostgres, onSQLite)
	volumes := map[string]core.Volume{}
	for _, v := range o.deployment.Spec.Template.Spec.Volumes {
		volumes[v.Name] = v
	}
	if o.claim == nil || volumes["data"].PersistentVolumeClaim == nil || volumes["data"].PersistentVolumeClaim.ClaimName != o.claim.Name {
		t.Errorf("the file is on %+v", volumes["data"])
	}
	if o.claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("to uninstall the chart deletes acknowledged events")
	}
	if o.deployment.Spec.Strategy.Type != apps.RecreateDeploymentStrategyType || o.budget != nil {
		t.Errorf("a second gateway is started beside the first, or the only one cannot be evicted: %v %v", o.deployment.Spec.Strategy, o.budget)
	}
	for _, m := range o.deployment.Spec.Template.Spec.Containers[0].VolumeMounts {
		if m.SubPath != "" {
			t.Errorf("%s is mounted as a single file", m.MountPath)
		}
	}
	if own := mustRender(t, onPostgres, onSQLite, `{store: {sqlite: {existingClaim: mine}}}`); own.claim != nil {
		t.Error("there is a second claim")
	}
}

// What would not work, or would tell a secret, is refused with a text that says what to do.
func TestChartRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ values, want string }{
		"nothing":                   {`{image: {repository: ""}}`, "image.repository: name the repository"},
		"a tag and a digest":        {`{image: {digest: "sha256:` + strings.Repeat("a", 64) + `"}}`, "a tag or a digest, and not both"},
		"no store":                  {`{store: {postgres: {secret: ""}}}`, "store.postgres.secret"},
		"two stores":                {`{store: {sqlite: {enabled: true}}}`, "use postgres or sqlite"},
		"two gateways on one file":  {`{store: {postgres: {secret: ""}, sqlite: {enabled: true}}}`, "set replicas to 1, or use store.postgres"},
		"two configurations":        {`{existingConfigMap: mine}`, "and not both"},
		"a setting of the chart's":  {`{config: {admin: "127.0.0.1:8081"}}`, "config.admin: the chart sets it"},
		"the URL of a standby":      {`{config: {store_read: "postgres://u:whsec_fake@h/db"}}`, "config.store_read: the chart sets it"},
		"a standby of a file":       {`{replicas: 1, store: {postgres: {secret: "", read: {secret: standby}}, sqlite: {enabled: true}}}`, "store.postgres.read: a file of SQLite has no standby"},
		"a password in a URL":       {`{config: {sources: [{name: a, to: "https://u:whsec_fake@a/hooks"}]}}`, "config.sources[0].to: the URL has a user"},
		"a key in a URL":            {`{config: {sources: [{name: a, to: {url: "https://whsec_fake:@a"}}]}}`, "config.sources[0].to.url: the URL has a user"},
		"one that senders sign":     {`{config: {sources: [{name: a, url: "https://u:whsec_fake@a?b"}]}}`, "config.sources[0].url: the URL has a user"},
		"one of an application":     {`{config: {destinations: [{name: a, url: "http://a", app_url: "http://u:whsec_fake@a"}]}}`, "config.destinations[0].app_url: the URL has a user"},
		"a port of their own":       {`{config: {cell_listen: "0.0.0.0:9444"}}`, "config.cell_listen: the chart sets it"},
		"a cell on a file":          {`{config: {cell: eu}, replicas: 1, store: {postgres: {secret: ""}, sqlite: {enabled: true}}}`, "config.cell: cells need a database each"},
		"what the chart can see":    {`{existingConfig: {adminTLS: true}}`, "existingConfig: it is for existingConfigMap"},
		"no admin tokens":           {`{config: {admin_tokens: null}}`, "config.admin_tokens"},
		"a secret of a source":      {`{config: {sources: [{name: a, secrets: ["whsec_fake"]}]}}`, "config.sources[0].secrets[0]: this is the secret itself"},
		"a secret with a date":      {`{config: {sources: [{name: a, secrets: [{secret: whsec_fake, until: 2026-12-01T00:00:00Z}]}]}}`, "config.sources[0].secrets[0].secret: this is the secret itself"},
		"a token":                   {`{config: {admin_tokens: [{name: a, token: a-fake-token-of-an-operator}]}}`, "config.admin_tokens[0].token: this is the secret itself"},
		"a channel":                 {`{config: {alerts: {notify: [{name: a, url: "slack://hook:fake@webhook"}]}}}`, "config.alerts.notify[0].url: this is the secret itself"},
		"a header":                  {`{config: {destinations: [{name: a, url: "http://a", headers: {Authorization: Bearer fake}}]}}`, "config.destinations[0].headers.Authorization: this is the secret itself"},
		"a header that signs":       {`{config: {destinations: [{name: a, url: "http://a", headers: {X-Signature: fake}}]}}`, "config.destinations[0].headers.X-Signature: this is the secret itself"},
		"a key to sign with":        {`{config: {destinations: [{name: a, url: "http://a", http_signature: {app-2026: whsec_fake}}]}}`, "config.destinations[0].http_signature.app-2026: this is the secret itself"},
		"a heartbeat":               {`{config: {alerts: {heartbeat: "https://beats.example.com/fake"}}}`, "config.alerts.heartbeat: this is the secret itself"},
		"a delay without an end":    {`{shutdownDelaySeconds: 60}`, "longer than shutdownDelaySeconds"},
		"a monitor without a token": {`{serviceMonitor: {enabled: true}}`, "serviceMonitor.token"},
		"a secret twice":            {`{secrets: [{name: a, secret: a, key: a}, {name: a, secret: b, key: b}]}`, "a is there twice"},
		"a slip in a name":          {`{replica: 3}`, "replica"},
		"a slip further in":         {`{store: {postgres: {url: "postgres://fake"}}}`, "url"},
		"a path as a name":          {`{secrets: [{name: ../x, secret: a, key: a}]}`, "secrets/0/name"},
		"no gateway":                {`{replicas: 0}`, "replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, onPostgres, tt.values); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			} else if strings.Contains(err.Error(), "whsec_fake") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

// An @ that stands behind the host is of no user.
func TestChartTakesURLs(t *testing.T) {
	mustRender(t, onPostgres, `{config: {sources: [{name: a, to: "http://a.example/@hooks?to=b@c"}], destinations: [{name: b, url: "https://b.example?to=b@c"}]}}`)
}

// A specification says what its sender's secrets are, and where a token stands: it has none itself.
func TestChartTakesSpecifications(t *testing.T) {
	mustRender(t, onPostgres, `{config: {sources: [{name: a, provider: custom, secrets: ["file:/run/secrets/hookonce/a"], to: "http://a",
		spec: {secret: "the key that its page shows", handshakes: [{when: [{in: "query:token", token: true}]}], reconcile: {auth: {token: "an API key"}}}}]}}`)
}

func TestChartWithoutConfiguration(t *testing.T) {
	before, _, _ := strings.Cut(onPostgres, "config:")
	if _, err := render(t, before); err == nil || !strings.Contains(err.Error(), "name a ConfigMap") {
		t.Errorf("err = %v", err)
	}
	if o := mustRender(t, before, `{existingConfigMap: mine}`); o.configMap != nil || o.deployment.Spec.Template.Spec.Volumes[0].ConfigMap.Name != "mine" {
		t.Errorf("the configuration is %+v", o.deployment.Spec.Template.Spec.Volumes[0])
	}
}

// The configuration that a pod gets is one that the gateway takes, with the variables that the pod sets.
func TestChartConfigIsTaken(t *testing.T) {
	for name, values := range map[string][]string{"plain": {onPostgres}, "with TLS, among cells": {onPostgres, overTLS, amongCells}} {
		t.Run(name, func(t *testing.T) {
			o := mustRender(t, values...)
			dir := t.TempDir()
			cert, key := certificate(t)
			for name, text := range map[string][]byte{"stripe": []byte("a-fake-secret-of-stripe"), "prometheus": []byte("a-fake-secret-of-prometheus"), "admin.crt": cert, "admin.key": key} {
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			text := strings.ReplaceAll(o.configMap.Data["hookonce.yaml"], "/run/secrets/hookonce/", dir+"/")
			var env []string
			for name, value := range variables(&o.deployment.Spec.Template.Spec.Containers[0]) {
				env = append(env, name+"="+value)
			}
			checkConfig(t, []byte(text), append(env, "HOOKONCE_STORE=postgres://hookonce@db.internal/hookonce"))
		})
	}
}

// certificate returns one that is made for tests, and its key.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	defer srv.Close()
	private, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// overTLS has the admin listener speak HTTPS, with a certificate from a Secret, and amongCells has
// the gateway be one of two cells.
const (
	overTLS = `
secrets:
  - {name: stripe, secret: stripe, key: webhook-secret}
  - {name: prometheus, secret: hookonce-admin, key: prometheus}
  - {name: admin.crt, secret: hookonce-admin-tls, key: tls.crt}
  - {name: admin.key, secret: hookonce-admin-tls, key: tls.key}
config:
  admin_tls: {cert: /run/secrets/hookonce/admin.crt, key: /run/secrets/hookonce/admin.key}
`
	amongCells = `
config:
  cell: eu
  cells_map: 1
  cells:
    - {name: eu, url: "https://hooks-eu.internal:8444", weight: 1}
    - {name: us, url: "https://hooks-us.internal:8444", weight: 0}
  cell_tls: {cert: /run/secrets/hookonce/admin.crt, key: /run/secrets/hookonce/admin.key, ca: /run/secrets/hookonce/admin.crt}
`
	monitored = `serviceMonitor: {enabled: true, token: {secret: hookonce-admin, key: prometheus}}`
)

// Where the admin listener speaks HTTPS, so does all that asks it: probes, commands in the pod, and
// Prometheus, which checks the certificate unless somebody said that it must not.
func TestChartAdminTLS(t *testing.T) {
	before, _, _ := strings.Cut(onPostgres, "config:")
	for name, tt := range map[string]struct {
		values           []string
		https, unchecked bool
		ca, serverName   string
	}{
		"none":                     {values: []string{onPostgres}},
		"in the configuration":     {values: []string{onPostgres, overTLS}, https: true, serverName: "shop-hookonce-admin.webhooks.svc"},
		"in a ConfigMap of theirs": {values: []string{before, `{existingConfigMap: mine, existingConfig: {adminTLS: true}}`}, https: true, serverName: "shop-hookonce-admin.webhooks.svc"},
		"of a CA": {values: []string{onPostgres, overTLS, `serviceMonitor: {tls: {ca: {secret: hookonce-admin-tls}, serverName: admin.internal}}`},
			https: true, ca: "hookonce-admin-tls ca.crt", serverName: "admin.internal"},
		"of nobody": {values: []string{onPostgres, overTLS, `serviceMonitor: {tls: {insecureSkipVerify: true}}`}, https: true, unchecked: true, serverName: "shop-hookonce-admin.webhooks.svc"},
	} {
		t.Run(name, func(t *testing.T) {
			o := mustRender(t, append(tt.values, monitored)...)
			gateway := &o.deployment.Spec.Template.Spec.Containers[0]
			speaks, asked := core.URISchemeHTTP, ""
			if tt.https {
				speaks, asked = core.URISchemeHTTPS, "https://127.0.0.1:8081"
			}
			for of, probe := range map[string]*core.Probe{"start": gateway.StartupProbe, "liveness": gateway.LivenessProbe, "readiness": gateway.ReadinessProbe} {
				if probe.HTTPGet.Scheme != speaks {
					t.Errorf("the probe of its %s speaks %q, want %q", of, probe.HTTPGet.Scheme, speaks)
				}
			}
			if at := variables(gateway)["HOOKONCE_ADMIN_URL"]; at != asked {
				t.Errorf("commands in the pod ask %q, want %q", at, asked)
			}
			e := o.monitor.Spec.Endpoints[0]
			if got, want := e.Scheme.String(), strings.ToLower(string(speaks)); got != want {
				t.Errorf("Prometheus speaks %q, want %q", got, want)
			}
			if !tt.https {
				if e.TLSConfig != nil {
					t.Errorf("Prometheus checks %+v, and there is no certificate", e.TLSConfig)
				}
				return
			}
			ca := ""
			if s := e.TLSConfig.CA.Secret; s != nil {
				ca = s.Name + " " + s.Key
			}
			if *e.TLSConfig.ServerName != tt.serverName || *e.TLSConfig.InsecureSkipVerify != tt.unchecked || ca != tt.ca {
				t.Errorf("Prometheus wants a certificate for %q of the CA %q, and takes any: %v", *e.TLSConfig.ServerName, ca, *e.TLSConfig.InsecureSkipVerify)
			}
		})
	}
}

// Other cells reach a gateway: it listens, the network lets them in, and a service leads to it.
// Without cells there is none of it.
func TestChartAmongCells(t *testing.T) {
	before, _, _ := strings.Cut(onPostgres, "config:")
	const from = `{networkPolicy: {cellsFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]}}`
	for name, values := range map[string][]string{
		"in the configuration":     {onPostgres, amongCells, from},
		"in a ConfigMap of theirs": {before, `{existingConfigMap: mine, existingConfig: {cell: true}}`, from},
	} {
		t.Run(name, func(t *testing.T) {
			o := mustRender(t, values...)
			gateway := &o.deployment.Spec.Template.Spec.Containers[0]
			_, port, _ := strings.Cut(variables(gateway)["HOOKONCE_CELL_LISTEN"], "0.0.0.0:")
			var open string
			for _, p := range gateway.Ports {
				if p.Name == "cells" {
					open = strconv.Itoa(int(p.ContainerPort))
				}
			}
			if port == "" || open != port {
				t.Errorf("it listens on port %q, and %q is called cells", port, open)
			}
			if in := o.network.Spec.Ingress; len(in) != 2 || in[1].Ports[0].Port.String() != "cells" || in[1].From[0].IPBlock.CIDR != "10.0.0.0/8" {
				t.Errorf("the network lets in %+v", in)
			}
			i := slices.IndexFunc(o.services, func(s core.Service) bool { return s.Name == "shop-hookonce-cells" })
			if i < 0 {
				t.Fatalf("no service of %+v is for cells", o.services)
			}
			if p := o.services[i].Spec.Ports[0]; p.TargetPort.String() != "cells" || strconv.Itoa(int(p.Port)) != port || !maps.Equal(o.services[i].Spec.Selector, o.deployment.Spec.Selector.MatchLabels) {
				t.Errorf("the service for cells leads to %+v", o.services[i].Spec)
			}
		})
	}
	o := mustRender(t, onPostgres)
	if gateway := &o.deployment.Spec.Template.Spec.Containers[0]; len(o.services) != 2 || len(gateway.Ports) != 2 || variables(gateway)["HOOKONCE_CELL_LISTEN"] != "" {
		t.Errorf("without cells there is a port for them: %+v, %+v", o.services, gateway.Ports)
	}
}

// Strangers bring a gateway to what docs/security.md says, and no further: a pod is not killed for
// that.
func TestChartMemory(t *testing.T) {
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	figure := regexp.MustCompile(`(?m)^\| all of it, as the system sees it \| (\d+) MiB \|`).FindSubmatch(page)
	if figure == nil {
		t.Fatal("docs/security.md does not say any more what a process takes at most")
	}
	most, err := strconv.ParseInt(string(figure[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	of := mustRender(t, onPostgres).deployment.Spec.Template.Spec.Containers[0].Resources
	if limit := of.Limits.Memory().Value(); limit < most<<20 {
		t.Errorf("a pod is killed at %d MiB, and strangers bring it to %d", limit>>20, most)
	}
	if of.Requests.Memory().Cmp(*of.Limits.Memory()) > 0 {
		t.Errorf("a pod asks for %v, and may have %v", of.Requests.Memory(), of.Limits.Memory())
	}
}

func variables(c *core.Container) map[string]string {
	all := map[string]string{}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			all[v.Name] = v.Value
		}
	}
	return all
}

// references returns which keys of which Secrets the variables of a container have.
func references(c *core.Container) map[string]string {
	all := map[string]string{}
	for _, v := range c.Env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			all[v.Name] = v.ValueFrom.SecretKeyRef.Name + " " + v.ValueFrom.SecretKeyRef.Key
		}
	}
	return all
}

// checkConfig has the program look at a configuration.
func checkConfig(t *testing.T, text []byte, env []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hookonce.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("go", "run", "./cmd/hookonce", "config", "check", "--config", file)
	check.Dir, check.Env = "../../..", append(os.Environ(), env...)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, bytes.TrimSpace(out))
	}
}
