package endtoend

import (
	"context"
	"github.com/hookonce/hookonce/internal/testskip"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// The statements of docs/operating.md are enough for a gateway that accepts, delivers, is paused and replays, and
// are the rights that the page lists. One that owns its schema makes partitions; one that owns nothing makes none.
func TestGatewayRoles(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		roles      string
		owner      string // who migrates; empty: the gateway
		partitions bool
	}{
		"it owns its schema": {roles: "gateway owns its schema", partitions: true},
		"it owns nothing":    {roles: "gateway two roles", owner: "hookonce_owner"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			as := func(role string) string { return strings.Replace(dsn, "postgres@", role+"@", 1) }
			exec := func(role, text string) {
				t.Helper()
				conn, err := pgx.Connect(t.Context(), as(role))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(context.Background())
				if _, err := conn.Exec(t.Context(), text); err != nil {
					t.Fatalf("%s\n%v", text, err)
				}
			}
			t.Cleanup(func() { // roles belong to the server
				conn, err := pgx.Connect(context.Background(), dsn)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(context.Background())
				for _, role := range []string{c.owner, "hookonce_gateway"} {
					if role == "" {
						continue
					}
					if _, err := conn.Exec(context.Background(), "DROP OWNED BY "+role+" CASCADE; DROP ROLE "+role); err != nil {
						t.Error(err)
					}
				}
			})
			exec("postgres", commands(t, "operating.md", c.roles))
			app := newKeeper(t)
			r := &restored{T: t, dir: t.TempDir(), env: append(os.Environ(), "SECRET=whsec_c2VjcmV0"),
				args: []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", as("hookonce_gateway"), "--source", "billing", "--provider", "standard", "--secret", "env:SECRET", "--to", app.URL}}
			if c.owner != "" {
				if status, out := command(os.Environ(), "migrate", "--store", as(c.owner)); status != 0 {
					t.Fatal(out)
				}
				exec(c.owner, commands(t, "operating.md", "gateway grants"))
				r.args = append(r.args, "--migrate=false")
			}
			_, out := command(append(r.env, "HOOKONCE_STORE="+as("hookonce_gateway"), "HOOKONCE_MIGRATE=false",
				"HOOKONCE_SOURCE=billing", "HOOKONCE_PROVIDER=standard", "HOOKONCE_SECRET=env:SECRET", "HOOKONCE_TO="+app.URL), "doctor") // which finds that nothing lacks
			if want := "this role may do all that the gateway does"; c.owner != "" && !strings.Contains(out, want) {
				t.Errorf("doctor does not say %q:\n%s", want, out)
			}
			_, out = command(os.Environ(), "doctor", "--store", as("hookonce_gateway")) // nobody knows what a program with the library does
			if c.owner != "" && !strings.Contains(out, "effects (INSERT)") {
				t.Errorf("doctor --store:\n%s", out)
			}
			r.serve()
			r.send("evt_1")
			r.eventually("the delivery", func() bool { return r.state("evt_1") == "done" })
			for _, args := range [][]string{
				{"destinations", "pause", "billing", "--reason", "test"}, {"destinations", "resume", "billing", "--reason", "test"},
				{"events", "replay", "billing", "evt_1", "--force", "--reason", "test"}, {"destinations", "list"}, {"events", "list", "--field", "json:$.id=evt_1"},
			} {
				if out, status := r.hookonce(args...); status != 0 {
					t.Errorf("%q: %s", args, out)
				}
			}
			r.eventually("the replay", func() bool { return len(app.got("evt_1")) == 2 })
			if got := r.send("evt_1"); got != "duplicate" {
				t.Errorf("a copy is %s", got)
			}
			var made bool
			r.eventually("a look at partitions", func() bool {
				conn, err := pgx.Connect(t.Context(), dsn)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close(context.Background())
				err = conn.QueryRow(t.Context(), `SELECT count(*) > 1 FROM pg_inherits WHERE inhparent = 'hookonce.bodies'::regclass`).Scan(&made)
				return err == nil && (made || strings.Contains(r.p.log.String(), "partition"))
			})
			if made != c.partitions {
				t.Errorf("partitions were made: %v\n%s", made, r.p.log)
			}
			if err := r.p.end(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			denied := strings.Count(r.p.log.String(), "42501")
			if ofPartitions := len(regexp.MustCompile(`(?m)^.*partition.*42501.*$`).FindAllString(r.p.log.String(), -1)); denied != ofPartitions {
				t.Errorf("it may not do something\n%s", r.p.log)
			}
		})
	}
}

// The statements of the page are the rights that its table lists, and those that it names for two modes.
func TestGatewayGrantsAreThoseOfTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	pairs := func(pattern, text, prefix string) (all []string) {
		for _, grant := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			for on := range strings.SplitSeq(strings.ReplaceAll(grant[2], prefix, ""), ",") {
				for verb := range strings.SplitSeq(grant[1], ", ") {
					all = append(all, verb+" ON "+strings.Join(strings.Fields(on), " "))
				}
			}
		}
		slices.Sort(all)
		return all
	}
	row := strings.Join(regexp.MustCompile("(?m)^\\| .*`hookonce serve` with .*$").FindAllString(string(page), -1), "\n") +
		strings.ReplaceAll(regexp.MustCompile(`(?ms)^A gateway needs more .*?\.\s`).FindString(string(page)), "\n", " ") + "`SELECT, INSERT, UPDATE, DELETE ON claims, responses`, `USAGE ON SCHEMA hookonce`"
	listed := pairs("`([A-Z, ]+) ON ([A-Za-z_, ]+)`", row, "\x00")
	granted := pairs(`GRANT ([A-Z, ]+) ON ([A-Za-z_.,\s]+) TO`, commands(t, "operating.md", "gateway grants"), "hookonce.")
	if diff := cmp.Diff(listed, granted); diff != "" {
		t.Errorf("-listed +granted\n%s", diff)
	}
}
