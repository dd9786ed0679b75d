package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeDir = "../../../deploy/compose"

// project reads the Compose file as docker compose does.
func project(t *testing.T, env ...string) (*types.Project, error) {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{filepath.Join(composeDir, "compose.yaml")}, cli.WithEnv(env), cli.WithWorkingDirectory(composeDir))
	if err != nil {
		t.Fatal(err)
	}
	return o.LoadProject(t.Context())
}

func TestCompose(t *testing.T) {
	p, err := project(t, "HOOKONCE_IMAGE=localhost/hookonce:v1.2.3", "POSTGRES_PASSWORD=fake")
	if err != nil {
		t.Fatal(err)
	}
	gateway := p.Services["hookonce"]
	if gateway.Image != "localhost/hookonce:v1.2.3" || !gateway.ReadOnly || !slices.Equal(gateway.CapDrop, []string{"ALL"}) {
		t.Errorf("the gateway is %+v", gateway)
	}
	for name, service := range p.Services {
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is open to the world at port %s", name, port.Published)
			}
		}
		for _, v := range service.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
		}
		for _, s := range service.Secrets {
			if _, ok := p.Secrets[s.Source]; !ok {
				t.Errorf("%s: nothing says where the secret %s is", name, s.Source)
			}
		}
	}
}

// Who starts it without an image or a password is told what is missing.
func TestComposeAsks(t *testing.T) {
	for _, env := range []string{"HOOKONCE_IMAGE=x", "POSTGRES_PASSWORD=fake"} {
		if _, err := project(t, env); err == nil {
			t.Errorf("with %s alone it starts", env)
		}
	}
}

// The gateway takes the configuration that is mounted, with secrets in the folder that is. One that is mounted by itself would
// be the old one for ever.
func TestComposeConfigIsTaken(t *testing.T) {
	p, err := project(t, "HOOKONCE_IMAGE=x", "POSTGRES_PASSWORD=fake")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(composeDir, "config", "hookonce.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir, gateway := t.TempDir(), p.Services["hookonce"]
	for _, m := range regexp.MustCompile(`file:/run/secrets/(\w+)`).FindAllStringSubmatch(string(text), -1) {
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte("whsec_a-fake-secret-of-"+m[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder := func(v types.ServiceVolumeConfig) bool {
		return v.Target == "/run/secrets" && filepath.Base(v.Source) == "secrets"
	}
	if len(gateway.Secrets) > 0 || !slices.ContainsFunc(gateway.Volumes, folder) {
		t.Errorf("secrets are mounted one by one, or not at all: %+v, %+v", gateway.Secrets, gateway.Volumes)
	}
	if named := gateway.Environment["HOOKONCE_CONFIG"]; named == nil || !slices.Contains(gateway.Command, *named) {
		t.Error("commands in the container read another configuration than the gateway")
	}
	if strings.Contains(string(text), "host.docker.internal") && len(gateway.ExtraHosts["host.docker.internal"]) == 0 {
		t.Error("on Linux nobody knows the name host.docker.internal")
	}
	var env []string
	for name, value := range gateway.Environment {
		if name != "HOOKONCE_CONFIG" {
			env = append(env, name+"="+*value)
		}
	}
	checkConfig(t, []byte(strings.ReplaceAll(string(text), "/run/secrets/", dir+"/")), env)
}

// Prometheus takes its own.
func TestComposePrometheus(t *testing.T) {
	if out, err := exec.Command("promtool", "check", "config", "--syntax-only", filepath.Join(composeDir, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
