package hookonce_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hookonce/hookonce"

// maxSiblings is how many first-party packages one package may import. Above that it does too much, unless it is one of
// assemblers, which put the others together and do little else.
const maxSiblings = 12

var assemblers = []string{"cmd/hookonce", "internal/gateway"}

// rule says which imports a package (and those below it, for a trailing slash) must not have.
type rule struct {
	pkg    string
	allow  []string // first-party packages that may be imported; nil: any
	deny   []string
	std    bool // nothing but the standard library, and what is allowed
	reason string
}

var rules = []rule{
	{pkg: "", std: true, allow: []string{"internal/body", "internal/singleflight", "internal/sentcalls", "internal/header", "internal/lease", "internal/loglimit", "internal/problem", "internal/publicurl", "internal/recorder", "internal/rendezvous"}, reason: "the contracts must cost a user nothing: no third-party package"},
	{pkg: "internal/problem", std: true, reason: "what is answered about a problem needs nothing"},
	{pkg: "internal/body", std: true, reason: "reading a body needs nothing"},
	{pkg: "internal/lease", std: true, reason: "a lease is kept in the same way whatever it is of"},
	{pkg: "internal/singleflight", std: true, reason: "who waits for whom in a process needs nothing"},
	{pkg: "internal/sentcalls", std: true, reason: "how calls are told apart needs nothing"},
	{pkg: "internal/publicurl", std: true, reason: "what a URL looks like needs nothing"},
	{pkg: "internal/recorder", std: true, allow: []string{"internal/header"}, reason: "an answer that is kept needs the names of headers"},
	{pkg: "provider", allow: []string{"", "provider/spec", "provider/internal/scheme", "provider/internal/incoming", "provider/internal/jws", "internal/closest", "internal/header", "internal/httpsig", "internal/outgoing"}, reason: "the catalogue is data about senders and knows no store"},
	{pkg: "provider/internal/scheme", allow: []string{"", "provider/spec", "provider/internal/incoming", "provider/internal/jws", "provider/internal/remotekeys", "internal/lru"}, reason: "the code of one sender knows neither the catalogue nor the others"},
	{pkg: "provider/internal/jws", std: true, reason: "a token and a key are what they are, whoever sends them; and programs carry no library for them"},
	{pkg: "provider/internal/remotekeys", std: true, allow: []string{"", "provider/internal/incoming", "provider/internal/jws", "internal/lru"}, reason: "fetching keys knows no sender"},
	{pkg: "provider/internal/incoming", std: true, allow: []string{""}, reason: "reading a request knows no sender"},
	{pkg: "provider/spec", allow: []string{"", "internal/header", "internal/httpsig", "internal/jsonscan", "internal/publicurl", "provider/internal/incoming"}, reason: "the language knows no sender"},
	{pkg: "provider/spec/jose", allow: []string{}, reason: "it is a library's face, and knows nothing of what it is used for"},
	{pkg: "provider/spec/specyaml", allow: []string{"provider/spec", "internal/specdecode"}, reason: "it reads a specification, and applies none"},
	{pkg: "internal/specdecode", allow: []string{"provider/spec", "provider/spec/jose", "internal/closest"}, reason: "it reads a specification, and applies none"},
	{pkg: "internal/jsonscan", std: true, reason: "users of the catalogue carry it"},
	{pkg: "internal/lru", std: true, reason: "users of the catalogue carry it"},
	{pkg: "internal/rendezvous", std: true, reason: "who owns a key is the same for programs and for gateways, and programs carry it"},
	{pkg: "internal/callmux", std: true, allow: []string{"internal/quota"}, reason: "it carries calls, and knows nothing of what they mean"},
	{pkg: "internal/cells", allow: []string{"", "internal/callmux", "internal/quota", "internal/journal", "internal/problem", "internal/rendezvous"}, reason: "which cell an event belongs to depends on neither how it came in nor a certain store"},
	{pkg: "internal/closest", std: true, reason: "guessing at words needs nothing"},
	{pkg: "memstore", allow: []string{""}, reason: "stores never import each other"},
	{pkg: "pgstore", allow: []string{"", "internal/inspect", "internal/ddl", "internal/header", "internal/pgerror", "internal/pgprimary", "internal/claimsql"}, reason: "stores never import each other"},
	{pkg: "sqlstore", allow: []string{"", "internal/inspect", "internal/ddl", "internal/header", "internal/pgerror", "internal/claimsql"}, reason: "stores never import each other"},
	{pkg: "internal/inspect", std: true, allow: []string{"", "internal/ddl", "internal/claimsql", "internal/tally"}, reason: "looking at the tables needs a database, and no driver"},
	{pkg: "internal/pgerror", std: true, reason: "what a SQLSTATE means is the same for every driver"},
	{pkg: "internal/pgprimary", allow: []string{"internal/pgerror"}, reason: "where connections lead is decided beneath all stores"},
	{pkg: "internal/pgstandby", allow: []string{}, reason: "what a server says of a commit is the same for whoever commits"},
	{pkg: "internal/connlimit", std: true, reason: "connections are beneath all that is said over them"},
	{pkg: "internal/httpsig", std: true, reason: "programs that use the catalogue carry it, and both sides of a signature are the same"},
	{pkg: "internal/header", std: true, reason: "which headers there are, and which pass, is decided by their names alone"},
	{pkg: "internal/loglimit", std: true, reason: "the bounds of a log need nothing"},
	{pkg: "internal/claimsql", std: true, allow: []string{""}, reason: "what stores in SQL databases have in common is beneath them"},
	{pkg: "redisstore", allow: []string{"", "internal/header"}, reason: "stores never import each other"},
	{pkg: "relay", allow: []string{"", "internal/header", "internal/lease", "internal/outgoing", "internal/retry"}, reason: "a relay knows an outbox by its contract, and no store"},
	{pkg: "janitor", allow: []string{""}, reason: "a janitor knows a store by its contract"},
	{pkg: "tallies", std: true, allow: []string{"", "internal/tally"}, reason: "what counts knows a store by its contract, and programs carry it: no third-party package"},
	{pkg: "dashboard", std: true, allow: []string{"", "internal/dashboard/frame", "internal/header", "internal/inspect", "internal/problem"}, reason: "a dashboard knows a store by its contract, and programs mount it: no third-party package"},
	{pkg: "cmd/hookonce/internal/outbox", allow: []string{"", "relay", "internal/retry", "pgstore", "sqlstore", "internal/config", "internal/ddl", "internal/sqlitefile"}, reason: "the command relay serves applications, and knows nothing of the gateway"},
	{pkg: "internal/retry", std: true, reason: "when work is tried again is the same for whoever carries it out"},
	{pkg: "internal/outgoing", std: true, allow: []string{"internal/header", "internal/httpsig"}, reason: "what all requests have in common needs nothing"},
	{pkg: "storetest", allow: []string{"", "memstore"}, reason: "it tests any store, and compares it with the model"},
	{pkg: "hookoncetest", allow: []string{"", "provider/spec"}, reason: "it tests any handler, whatever its store"},
	{pkg: "internal/ddl", std: true, allow: []string{"", "internal/claimsql", "internal/pgerror"}, reason: "tables are beneath the stores, and a program that does not migrate carries no tool for it"},
	{pkg: "schema", allow: []string{"internal/ddl"}, reason: "only who migrates imports it, and the stores do not"},
	{pkg: "internal/refusals", std: true, reason: "what was refused is remembered in plain words"},
	{pkg: "internal/quota", std: true, reason: "dividing a number needs nothing"},
	{pkg: "internal/tally", std: true, reason: "counting needs nothing, and whoever counts imports it"},
	{pkg: "internal/tracing", allow: []string{"", "internal/header", "internal/journal", "internal/retry"}, reason: "OpenTelemetry has one place, and those whose work it shows know its face alone"},
	{pkg: "internal/journal", allow: []string{"", "internal/retry", "internal/tally"}, reason: "the journal knows no provider, no HTTP and no concrete store"},
	{pkg: "internal/journal/engine", allow: []string{"", "internal/tally", "internal/journal", "internal/journal/inflight", "internal/journal/bypass", "internal/lru"}, reason: "the engine knows a store by its contract"},
	{pkg: "internal/journal/inflight", allow: []string{"internal/journal", "internal/quota"}, reason: "what is in flight is known without asking a store"},
	{pkg: "internal/journal/bypass", allow: []string{"", "internal/journal", "internal/journal/inflight"}, reason: "the bypass knows a store by its contract"},
	{pkg: "internal/journal/search", allow: []string{"internal/journal"}, reason: "it writes SQL, and opens nothing"},
	{pkg: "internal/journal/standby", allow: []string{"internal/journal", "internal/pgstandby", "internal/tally"}, reason: "what people read beside the primary knows stores by their contract"},
	{pkg: "internal/journal/pg", allow: []string{"", "internal/tally", "internal/journal", "internal/journal/search", "internal/pgerror", "internal/pgprimary", "internal/pgstandby", "internal/ddl", "schema"}, reason: "journal stores never import each other"},
	{pkg: "internal/journal/sqlite", allow: []string{"", "internal/tally", "internal/journal", "internal/journal/search", "internal/ddl", "schema", "internal/sqlitefile"}, reason: "journal stores never import each other"},
	{pkg: "internal/secretshape", allow: []string{"provider/spec"}, reason: "what a secret looks like is known without a request, a store or a setting"},
	{pkg: "internal/providertext", allow: []string{"provider/spec"}, reason: "words about a sender need nothing but what is known of it"},
	{pkg: "internal/diagnose", allow: []string{"", "internal/httpsig", "internal/secretshape", "provider", "provider/spec"}, reason: "it looks at a request that somebody has at hand; nothing that serves requests may depend on it"},
	{pkg: "internal/sqlitefile", allow: []string{}, reason: "where a file is needs nothing of ours"},
	{pkg: "internal/ingest", deny: []string{"internal/deliver", "internal/journal/pg", "internal/journal/sqlite", "internal/config"}, reason: "ingest and deliver meet in journal, and only gateway names concrete stores"},
	{pkg: "internal/deliver", deny: []string{"internal/ingest", "provider", "internal/journal/pg", "internal/journal/sqlite", "internal/config"}, reason: "ingest and deliver meet in journal, and only gateway names concrete stores"},
	{pkg: "internal/idempotency", allow: []string{"", "internal/header", "internal/problem", "internal/loglimit", "internal/connlimit", "internal/lru", "internal/lease"}, reason: "a service behind a key needs neither a journal nor a certain store"},
	{pkg: "internal/observe", allow: []string{"", "internal/header", "internal/loglimit", "internal/ddl"}, reason: "what only looks on needs no journal, and must not be able to claim anything"},
	{pkg: "internal/idempotency/claimstore", allow: []string{"", "internal/pgstandby", "pgstore", "sqlstore"}, reason: "it chooses a store and knows nothing of requests"},
	{pkg: "internal/fleet", allow: []string{"internal/journal"}, reason: "what gateways say of themselves is in the store, and concerns nothing else"},
	{pkg: "internal/reconcile", allow: []string{"", "internal/header", "internal/jsonscan", "provider/spec"}, reason: "reading a sender's list needs neither a store nor the catalogue: what is on record is asked through an interface"},
	{pkg: "internal/reconcile/schedule", allow: []string{"", "internal/journal", "internal/reconcile", "provider/spec"}, reason: "when sources are compared is a matter of marks in the journal"},
	{pkg: "internal/overview", allow: []string{"internal/fleet", "internal/journal", "internal/tally"}, reason: "how all stands is asked of the journal, and of nothing that works"},
	{pkg: "internal/tail", allow: []string{"internal/journal"}, reason: "what comes is seen in the store, whoever put it there"},
	{pkg: "internal/alert", allow: []string{"internal/closest", "internal/overview"}, reason: "what is wrong is decided from a snapshot alone"},
	{pkg: "internal/alerting", allow: []string{"internal/alert", "internal/journal", "internal/overview", "internal/retry"}, reason: "whom to tell is decided of what rules say, and how somebody is told is a matter of notifiers"},
	{pkg: "internal/api", allow: []string{"", "internal/alert", "internal/overview", "internal/fleet", "internal/refusals", "internal/tail", "internal/tally", "internal/journal", "internal/header", "internal/problem", "internal/loglimit", "internal/connlimit", "internal/lru"}, reason: "the API knows the journal alone, and neither how events come in nor how they go out"},
	{pkg: "internal/dashboard/frame", std: true, allow: []string{"internal/loglimit", "internal/problem", "internal/tally"}, reason: "what is around a page knows nothing of what the page shows"},
	{pkg: "internal/dashboard", allow: []string{"internal/dashboard/frame", "internal/alert", "internal/overview", "internal/tally", "internal/api", "internal/fleet", "internal/doctor", "internal/problem"}, reason: "pages are answers of the API: what they show, programs can ask for"},
	{pkg: "cmd/hookonce/internal/effects", allow: []string{"", "internal/config", "internal/ddl", "internal/inspect", "internal/sqlitefile"}, reason: "it reads tables, of users and of ours, and needs no store"},
	{pkg: "internal/doctor", deny: []string{"internal/gateway", "internal/journal/pg", "internal/journal/sqlite", "pgstore", "sqlstore"}, reason: "who asks whether a store is well cannot depend on opening it"},
	{pkg: "internal/conformance", deny: []string{"internal/gateway", "internal/config"}, reason: "it knows engines and stores, and no configuration"},
	{pkg: "internal/conformance/testdb", allow: []string{"", "internal/ddl", "internal/journal", "internal/journal/journaltest", "internal/testserver/cutproxy", "pgstore", "redisstore", "schema", "sqlstore", "storetest"}, reason: "it opens stores for suites, and knows neither commands nor throwaway servers"},
	{pkg: "internal/alerting/letter", allow: []string{"internal/alert", "internal/alerting", "internal/notify"}, reason: "what is read depends on what is told, and not on who decides it"},
	{pkg: "internal/notify", allow: []string{"internal/header", "internal/outgoing", "internal/retry"}, reason: "how a message gets to people does not depend on what it says"},
	{pkg: "internal/config", allow: []string{"", "provider", "provider/spec", "provider/spec/specyaml", "internal/alert", "internal/closest", "internal/header", "internal/notify", "internal/outgoing", "internal/retry", "internal/secretshape", "internal/settings", "internal/specdecode"}, reason: "settings are declared without knowing who reads them"},
	{pkg: "internal/tool/mutants", std: true, reason: "it plants faults in everything, and would see none in what it is made of"},
	{pkg: "internal/pagetest", std: true, reason: "a page and a table need nothing"},
	{pkg: "internal/testskip", std: true, reason: "it only knows how it was compiled"},
	{pkg: "internal/settings", allow: []string{"internal/closest"}, reason: "how settings are read does not depend on what they mean"},
}

// testOnly packages serve tests; production code must not carry them.
var testOnly = []string{"storetest", "hookoncetest", "internal/journal/journaltest", "internal/dashboard/dashboardtest", "internal/tracing/tracingtest", "internal/httpsig/httpsigtest", "internal/reconcile/reconciletest", "internal/testserver/pgtest", "internal/testserver/mariadbtest", "internal/testserver/redistest", "internal/testserver/patronitest", "internal/testserver/galeratest", "internal/testserver/cutproxy", "internal/conformance/testdb", "internal/testserver/pgproxy", "internal/testserver/throwaway", "internal/pagetest", "internal/testskip", "internal/tool/attack", "internal/tool/year"}

func TestImportRules(t *testing.T) {
	packages := listPackages(t)
	for _, r := range rules {
		p, ok := packages[path(r.pkg)]
		if !ok {
			t.Errorf("rule for %q: no such package; delete the rule", r.pkg)
			continue
		}
		for _, imp := range p.Imports {
			sibling, own := strings.CutPrefix(imp, module)
			sibling = strings.TrimPrefix(sibling, "/")
			switch {
			case r.std && strings.Contains(imp, ".") && !(own && slices.Contains(r.allow, sibling)):
			case own && r.allow != nil && !slices.Contains(r.allow, sibling):
			case own && slices.Contains(r.deny, sibling):
			default:
				continue
			}
			t.Errorf("%s imports %s: %s", p.ImportPath, imp, r.reason)
		}
	}
}

// A package that programs import has a rule, so that whoever adds one says what it may carry.
func TestImportRulesOfPublicPackages(t *testing.T) {
	for _, name := range public(t) {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.pkg == name }) {
			t.Errorf("%s has no import rule", path(name))
		}
	}
}

func TestTestHelpersStayInTests(t *testing.T) {
	for _, p := range listPackages(t) {
		if p.ImportPath == path("internal/conformance") || slices.Contains(testOnly, strings.TrimPrefix(p.ImportPath, module+"/")) {
			continue // the former runs the suites for people, which is one command
		}
		for _, imp := range p.Imports {
			if slices.Contains(testOnly, strings.TrimPrefix(imp, module+"/")) {
				t.Errorf("%s imports %s outside its tests", p.ImportPath, imp)
			}
		}
	}
}

// What a person asks about a request is nobody else's business: tries with changed requests and secrets are not to be had where
// requests are served.
// Nor are the suites, which change what they can reach.
func TestWhatIsForPeopleIsForCommands(t *testing.T) {
	for _, room := range []string{"internal/diagnose", "internal/conformance"} {
		found := false
		for _, p := range listPackages(t) {
			imports := slices.Contains(p.Imports, path(room))
			found = found || imports
			if imports && p.ImportPath != path("cmd/hookonce") {
				t.Errorf("%s imports %s: only the command may, which a person runs", p.ImportPath, room)
			}
		}
		if !found {
			t.Errorf("nothing imports %s", room)
		}
	}
}

func TestPackagesStaySmall(t *testing.T) {
	for _, p := range listPackages(t) {
		siblings := 0
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module) {
				siblings++
			}
		}
		if siblings > maxSiblings && !slices.Contains(assemblers, strings.TrimPrefix(p.ImportPath, module+"/")) {
			t.Errorf("%s imports %d packages of this module, more than %d: split it", p.ImportPath, siblings, maxSiblings)
		}
	}
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func path(pkg string) string {
	if pkg == "" {
		return module
	}
	return module + "/" + pkg
}

func listPackages(t *testing.T) map[string]goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string]goPackage{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}
