package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
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

// The gateway takes the configuration that is mounted, with the secrets that the Compose file names.
func TestComposeConfigIsTaken(t *testing.T) {
	p, err := project(t, "HOOKONCE_IMAGE=x", "POSTGRES_PASSWORD=fake")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(composeDir, "config", "hookonce.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, s := range p.Services["hookonce"].Secrets {
		if err := os.WriteFile(filepath.Join(dir, s.Source), []byte("whsec_a-fake-secret-of-"+s.Source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var env []string
	for name, value := range p.Services["hookonce"].Environment {
		env = append(env, name+"="+*value)
	}
	checkConfig(t, []byte(strings.ReplaceAll(string(text), "/run/secrets/", dir+"/")), env)
}

// Prometheus takes its own.
func TestComposePrometheus(t *testing.T) {
	if out, err := exec.Command("promtool", "check", "config", "--syntax-only", filepath.Join(composeDir, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
