package gateway

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/overview"
)

// Commands that people are told to type, and that read the configuration, name its file, unless it is the one of the working folder:
// they would look at nothing, and find nothing wrong. Those that ask the gateway have no such flag.
func TestCommandsNameTheConfiguration(t *testing.T) {
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"": "", "hookonce.yaml": "", "./hookonce.yaml": "",
		"/etc/hookonce/hookonce.yaml": "/etc/hookonce/hookonce.yaml", "my gateway/hookonce.yaml": "'" + folder + "/my gateway/hookonce.yaml'",
	} {
		cfg := configured(sqliteStore(t), "http://127.0.0.1:1")
		cfg.File = file
		g := start(t, cfg)
		shown, err := g.overview.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wrong := *shown
		wrong.Store.Unwritable = &overview.Trouble{Since: wrong.At, Error: "read-only"}
		wrong.Cells = []overview.CellState{{Name: "us", Error: "gone"}}
		wrong.Reconciled = []overview.Reconciled{{At: wrong.At, Until: wrong.At.Add(time.Hour), Table: "payments", Doubled: 1, Command: "hookonce reconcile effects --table payments"}}
		wrong.Sources = []overview.SourceState{{Name: "orders", Compared: &overview.Compared{Every: 900, Ended: wrong.At, Error: "403"}, NeverArrived: &overview.Lost{Count: 1}}}
		read, asked := 0, 0
		for _, a := range alert.Judge(&wrong).Alerts {
			command, of, named := strings.Cut(a.Action.Command, " --config ")
			switch reads := !strings.HasPrefix(command, "hookonce reconcile missing"); {
			case named != (reads && want != "") || of != "" && of != want:
				t.Errorf("%q: %s says to type %q, want --config %q", file, a.Rule, a.Action.Command, want)
			case reads:
				read++
			default:
				asked++
			}
		}
		if read != 4 || asked != 1 {
			t.Errorf("%q: %d commands read the configuration, and %d ask the gateway", file, read, asked)
		}
		for path, command := range map[string]string{"/store": "hookonce doctor", "/sources": "hookonce config show"} {
			page := pageOf(t, client(t), g, path)
			if strings.Contains(page, command+" --config ") != (want != "") || !strings.Contains(page, command) {
				t.Errorf("%q: %s does not say how to type %q: %s", file, path, command, page)
			}
		}
	}
}

// pageOf returns a page of the dashboard.
func pageOf(t *testing.T, c *http.Client, g *Gateway, path string) string {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+g.AdminAddr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", path, res.StatusCode, text, err)
	}
	return string(text)
}
