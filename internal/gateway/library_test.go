package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/inspect"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/sqlstore"
)

// What the library and reconciliations left in the journal's database is in the gateway's dashboard, for those whom it lets in,
// and doubled effects are in its verdict.
func TestLibraryInTheDashboard(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		cfg := configured(store, newSink(t).URL)
		cfg.AdminTokens = []config.AdminToken{{Name: "reader", Token: settings.Literal("a-fake-token-for-reading"), Role: config.RoleRead},
			{Name: "ada", Token: settings.Literal("a-fake-token-for-operators"), Role: config.RoleOperator}}
		g := start(t, cfg)
		ctx := t.Context()
		if _, err := g.library.store.Claim(ctx, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "app", Key: "evt_1"}}); err != nil {
			t.Fatal(err)
		}
		dialect := map[string]sqlstore.Dialect{config.SQLite: "sqlite", config.Postgres: "postgres"}[store.Driver]
		tables, err := inspect.New(g.library.db, dialect, cfg.Schema, g.opt.Now)
		if err != nil {
			t.Fatal(err)
		}
		found := hookonce.Reconciliation{At: g.opt.Now(), Question: hookonce.ReconcileQuestion{Table: "orders", EventColumn: "id", Where: "a < 'b'"}, Doubled: 2, Surplus: 3,
			Found: []hookonce.Reconciled{{Event: "evt_7", Rows: 3}}}
		if err := tables.Record(ctx, found); err != nil {
			t.Fatal(err)
		}
		for range 60 { // of another question, which is put more often
			other := hookonce.Reconciliation{At: g.opt.Now(), Question: hookonce.ReconcileQuestion{Table: "refunds", EventColumn: "id"}}
			if err := tables.Record(ctx, other); err != nil {
				t.Fatal(err)
			}
		}
		looking, err := g.library.db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := g.library.reconciled(ctx); len(all) != 2 || err != nil {
			t.Errorf("while somebody looks at a page: %+v, %v", all, err)
		}
		if err := looking.Close(); err != nil {
			t.Fatal(err)
		}
		json := http.Header{"Accept": {"application/json"}}
		if res := (call{method: "GET", path: "/library/", header: json}).do(t, g, nil); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("nobody: %d", res.StatusCode)
		}
		var now struct {
			Headline string
			Claims   []struct{ Source string }
		}
		(call{method: "GET", path: "/library/", header: json, token: "a-fake-token-for-reading"}).do(t, g, &now)
		if !strings.HasPrefix(now.Headline, "In orders, 2") || len(now.Claims) != 1 || now.Claims[0].Source != "app" {
			t.Errorf("the page says %+v", now)
		}
		if res := (call{method: "POST", path: "/library/claim", token: "a-fake-token-for-reading", body: "x"}).do(t, g, nil); res.StatusCode != http.StatusForbidden {
			t.Errorf("a reader changes something: %d", res.StatusCode)
		}
		give := url.Values{"source": {"app"}, "key": {"evt_1"}, "attempt": {"1"}, "reason": {"its process died"}}
		req, err := http.NewRequest("POST", "http://"+g.AdminAddr().String()+"/library/claim", strings.NewReader(give.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Authorization": {"Bearer a-fake-token-for-operators"}, "Accept": {"application/json"}}
		res, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		c, err := g.library.store.Lookup(ctx, hookonce.Ref{Source: "app", Key: "evt_1"})
		if err != nil || c.State != hookonce.StateFailed {
			t.Errorf("given back, with %d: %+v, %v", res.StatusCode, c, err)
		}
		var audits api.AuditList
		(call{method: "GET", path: api.Base + "/audit", token: "a-fake-token-for-reading"}).do(t, g, &audits)
		if len(audits.Audit) != 1 {
			t.Fatalf("on record is %+v", audits.Audit)
		}
		a := audits.Audit[0]
		if got := strings.Join([]string{a.By, a.Reason, a.Action, a.What}, "; "); got != "ada; its process died; give_back; claim of evt_1 from app, attempt 1" {
			t.Errorf("on record is %s", got)
		}
		var all api.Overview
		(call{method: "GET", path: api.Base + "/overview", token: "a-fake-token-for-reading"}).do(t, g, &all)
		want := overview.Reconciled{At: all.Reconciled[1].At, Until: all.Reconciled[1].At.Add(7 * 24 * time.Hour), Table: "orders", Doubled: 2, Surplus: 3, Sample: "evt_7",
			Command: `hookonce reconcile effects --table orders --event-column id --where 'a < '\''b'\'''`}
		if len(all.Reconciled) != 2 || all.Reconciled[1] != want || !all.Verdict.Doubled.Yes || all.Verdict.Healthy {
			t.Errorf("the verdict is %+v, of %+v", all.Verdict, all.Reconciled)
		}
	})
}
