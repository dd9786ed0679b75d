package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

var cellsFor = flag.Duration("cells", 6*time.Second, "how long cells are harmed under load")

// cellProcessVariable names the file of a gateway that this program is to be.
const cellProcessVariable = "HOOKONCE_TEST_CELL"

// cellProcess is a gateway with the configuration in a file, until it is killed or its standard input ends. It says on
// standard output where it listens.
func cellProcess(path string) {
	load := func() (*config.Config, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return config.Load(config.Input{Path: path, Data: data, ReadFile: os.ReadFile})
	}
	ahead, _ := time.ParseDuration(os.Getenv("HOOKONCE_TEST_AHEAD"))
	fail := func(err error) { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
	cfg, err := load()
	if err != nil {
		fail(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g, err := Start(context.Background(), cfg, Options{Load: load, Logger: log, Now: func() time.Time { return time.Now().Add(ahead) }})
	if err != nil {
		fail(err)
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		for range hup {
			_, _ = g.Reload(context.Background(), "a signal") // which says in the log what is wrong
		}
	}()
	fmt.Println(g.Addr(), g.CellAddr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// standbysFrom is how long cells have to be harmed that each gets a standby, which takes over once.
const standbysFrom = time.Minute

// database is the server of a cell, which a standby may follow.
type database struct {
	*pgtest.Cluster
	standby *pgtest.Cluster // that its commits wait for; nil: there is none, or it has taken over
}

// harm kills the server, and has it come back, or for good, and its standby take over. It reports whether that did.
func (d *database) harm() (promoted bool, err error) {
	if err = d.Stop(true); err != nil {
		return false, err
	}
	if d.standby == nil || rand.IntN(3) > 0 {
		return false, d.Restart()
	}
	err = d.standby.Promote()
	d.Cluster, d.standby = d.standby, nil
	return true, err
}

// victim is a cell in a process and on a server of its own.
type victim struct {
	*testCell
	cluster *database
	path    string
	ahead   time.Duration
	address atomic.Pointer[string] // that senders post to
	process *exec.Cmd
	stdin   io.Closer
	gone    bool
	twin    bool // another gateway on the same store
}

func (v *victim) write() error { return os.WriteFile(v.path, []byte(v.text()), 0o600) }

// launch starts the process, again until it runs.
func (v *victim) launch(t *testing.T) {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), cellProcessVariable+"="+v.path, "HOOKONCE_TEST_AHEAD="+v.ahead.String())
		var said bytes.Buffer
		c.Stderr = &said
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if v.stdin, err = c.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		addresses := strings.Fields(line)
		if len(addresses) == 2 {
			v.process = c
			v.gate.to.Store(&addresses[1])
			v.address.Store(&addresses[0])
			return
		}
		_ = c.Wait()
		if time.Now().After(deadline) {
			t.Fatalf("cell %s does not start: %s", v.name, said.String())
		}
	}
}

// kill ends the process as kill -9 does.
func (v *victim) kill() {
	_ = v.process.Process.Kill()
	_ = v.process.Wait()
	v.stdin.Close()
}

// torture are cells under load, and what senders know of it.
type torture struct {
	*cellWorld
	t       *testing.T
	victims []*victim
	client  *http.Client
	signer  map[string]hookonce.Provider
	stop    chan struct{}
	next    atomic.Int64
	busy    sync.WaitGroup

	promoted int // standbys

	mu    sync.Mutex
	acked map[string]bool // by key

	histories *keyHistories
}

// failed is the verdict that a sender has no use for.
const failed = "failed"

// post posts a body to a door, and returns the verdict; empty: it was not acknowledged, and nobody knows what became of it.
func (w *torture) post(v *victim, source string, body []byte) (verdict string) {
	r := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: body, Now: time.Now()}
	if err := w.signer[source].(interface{ Sign(*hookonce.Request) error }).Sign(r); err != nil {
		w.t.Error(err)
		return failed
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+*v.address.Load()+"/in/"+source, bytes.NewReader(body))
	if err != nil {
		w.t.Error(err)
		return failed
	}
	req.Header = r.Header
	res, err := w.client.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	if res.StatusCode/100 != 2 && res.StatusCode != http.StatusServiceUnavailable {
		w.t.Errorf("answered %d", res.StatusCode)
	}
	if res.StatusCode/100 != 2 {
		return ""
	}
	return cmp.Or(res.Header.Get("Hookonce-Status"), failed)
}

// door is a random one of the cells that are left.
func (w *torture) door() *victim {
	for {
		if v := w.victims[rand.IntN(len(w.victims))]; !v.gone {
			return v
		}
	}
}

// insist posts copies of a request at once, each to random doors until it is acknowledged.
func (w *torture) insist(source string, keys []string, copies int) {
	body := batch(keys...)
	if source == "orders" {
		body = event(keys[0])
	}
	var group sync.WaitGroup
	for range copies {
		group.Go(func() { w.insistOn(source, keys, body) })
	}
	group.Wait()
}

// insistOn posts one copy to random doors until it is acknowledged: while harm is done that may take any time.
func (w *torture) insistOn(source string, keys []string, body []byte) {
	for deadline := time.Now().Add(patience); w.told(source, keys, body) == ""; {
		select {
		case <-w.stop:
		default:
			deadline = time.Now().Add(patience)
		}
		if time.Now().After(deadline) {
			w.t.Errorf("%v is not acknowledged", keys)
			return
		}
		time.Sleep(rand.N(60 * time.Millisecond))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keys {
		w.acked[source+"/"+k] = true
	}
}

// told posts to a random door, and puts on record what is told of a key that comes alone.
func (w *torture) told(source string, keys []string, body []byte) (verdict string) {
	if source != "orders" {
		return w.post(w.door(), source, body)
	}
	end := w.histories.sent(keys[0])
	verdict = w.post(w.door(), source, body)
	end(verdict)
	return verdict
}

// send sends events, single and in batches, and copies of earlier ones, until it is to stop.
func (w *torture) send() {
	for {
		select {
		case <-w.stop:
			return
		default:
		}
		n := w.next.Add(1)
		if n%3 == 0 { // the owner may be another one by now
			w.insist("orders", []string{fmt.Sprint("evt-", 1+rand.Int64N(n))}, 1)
		}
		if n%5 != 0 {
			w.insist("orders", []string{fmt.Sprint("evt-", n)}, 2)
			continue
		}
		w.insist("crm", ids(fmt.Sprint("item-", n), 6), 2)
	}
}

// harm does something to a cell, and makes it good again.
func (w *torture) harm(what int) {
	v := w.victims[rand.IntN(len(w.victims))]
	switch what {
	case 0:
		v.kill()
		v.launch(w.t)
	case 1:
		promoted, err := v.cluster.harm()
		if err != nil {
			w.t.Error(err)
		}
		if promoted {
			w.promoted++
		}
	case 2:
		v.gate.set(true)
		time.Sleep(rand.N(600 * time.Millisecond))
		v.gate.set(false)
	case 3:
		v.gate.delay.Store(int64(rand.N(80 * time.Millisecond)))
		time.Sleep(rand.N(400 * time.Millisecond))
		v.gate.delay.Store(0)
	default:
		w.move(v)
	}
}

// move gives all cells other weights, and has one of them, or all, read the file; the others learn of the map from it, or
// when they start.
func (w *torture) move(first *victim) {
	w.number++
	for _, v := range w.victims {
		v.weight = rand.IntN(4)
	}
	w.cells[rand.IntN(len(w.cells))].weight++
	for _, v := range w.victims {
		if err := v.write(); err != nil {
			w.t.Fatal(err)
		}
	}
	all := rand.IntN(2) == 0
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		for _, v := range w.victims {
			if v == first || all {
				_ = v.process.Process.Signal(syscall.SIGHUP)
			}
		}
		if w.newest(first) == w.number {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("map %d is not introduced", w.number)
		}
	}
}

// newest is the number of a cell's newest map.
func (w *torture) newest(v *victim) (n int) {
	conn, err := pgx.Connect(context.Background(), v.dsn)
	if err != nil {
		return 0
	}
	defer conn.Close(context.Background())
	_ = conn.QueryRow(context.Background(), `SELECT number FROM hookonce.cell_fence`).Scan(&n)
	return n
}

// recorded returns in which cells the keys are on record, as source/key.
func (w *torture) recorded(of ...*victim) map[string][]string {
	all := map[string][]string{}
	for _, v := range of {
		if v.twin {
			continue
		}
		conn, err := pgx.Connect(context.Background(), v.dsn)
		if err != nil {
			w.t.Fatal(err)
		}
		rows, err := conn.Query(context.Background(), `SELECT source || '/' || key FROM hookonce.events WHERE key IS NOT NULL`)
		if err != nil {
			w.t.Fatal(err)
		}
		keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			w.t.Fatal(err)
		}
		for _, k := range keys {
			all[k] = append(all[k], v.name)
		}
		conn.Close(context.Background())
	}
	return all
}

// majorOfCell gives each of the three cells another PostgreSQL, if those that scripts/install-servers versions brings are
// there; 0: the usual one.
func majorOfCell(t *testing.T, cell int) int {
	major := []int{15, 16 + rand.IntN(2), 18}[cell]
	if !pgtest.Has(major) {
		t.Logf("cell %d: PostgreSQL %d is not on this machine, the usual one takes its place", cell, major)
		return 0
	}
	t.Logf("cell %d: PostgreSQL %d", cell, major)
	return major
}

func newTorture(t *testing.T, app *sink) *torture {
	w := &torture{cellWorld: newCellWorldWithout(t, app.URL), t: t, client: client(t), stop: make(chan struct{}), acked: map[string]bool{}, signer: map[string]hookonce.Provider{}, histories: newKeyHistories()}
	w.client.Timeout = 15 * time.Second
	w.folder = t.TempDir() + string(filepath.Separator)
	for name, content := range w.files {
		if err := os.WriteFile(w.folder+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, ahead := range []time.Duration{0, 50 * time.Second, -50 * time.Second} {
		cluster := &database{Cluster: pgtest.Start(t, pgtest.Options{Major: majorOfCell(t, i)})}
		dsn := cluster.DSN(t)
		if *cellsFor >= standbysFrom {
			cluster.standby = cluster.Standby(t)
			dsn = cluster.Either(dsn, cluster.standby)
		}
		c := &testCell{world: w.cellWorld, name: string(rune('a' + i)), dsn: dsn, gate: newGate(t)}
		w.cells = append(w.cells, c)
		w.victims = append(w.victims, &victim{testCell: c, cluster: cluster, path: w.folder + c.name + ".yaml", ahead: ahead})
	}
	w.victims[0].weight = 1
	second := &testCell{world: w.cellWorld, name: "a", dsn: w.cells[0].dsn, gate: newGate(t)}
	w.victims = append(w.victims, &victim{testCell: second, cluster: w.victims[0].cluster, path: w.folder + "second.yaml", twin: true})
	for _, v := range w.victims {
		if err := v.write(); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(config.Input{Path: w.victims[0].path, Data: []byte(w.victims[0].text()), ReadFile: os.ReadFile})
	if err != nil {
		t.Fatal(err)
	}
	for i := range cfg.Sources {
		p, err := cfg.Sources[i].NewProvider()
		if err != nil {
			t.Fatal(err)
		}
		w.signer[cfg.Sources[i].Name] = p
	}
	return w
}

// Cells under load, with copies to random doors, while gateways and databases are killed, cells cannot reach each other or
// take their time, their clocks differ, and maps change, of which one cell has a gateway that learns late: nothing that was
// acknowledged is lost, and no key is on record
// twice. Then a cell is lost and forgotten: what is on record twice after that is what it had, and is counted.
func TestCellsUnderFire(t *testing.T) {
	testskip.Long(t)
	app := newSink(t)
	w := newTorture(t, app)
	for _, v := range w.victims {
		v.launch(t)
		t.Cleanup(func() {
			if !v.gone {
				v.kill()
			}
		})
	}
	for range 8 {
		w.busy.Go(w.send)
	}
	did := map[int]int{}
	for end := time.Now().Add(*cellsFor); time.Now().Before(end) || len(did) < 5; {
		what := rand.IntN(6)
		if time.Now().After(end) {
			what = slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return did[i] == 0 })
		}
		did[min(what, 4)]++
		w.harm(what)
		time.Sleep(rand.N(150 * time.Millisecond))
	}
	close(w.stop)
	w.busy.Wait()
	on := w.recorded(w.victims...)
	lost, doubled := w.account(on, w.acked)
	t.Logf("%d events acknowledged; %d kills of gateways, %d of databases, %d of them for good, %d partitions, %d delays, %d maps; lost %d, doubled %d",
		len(w.acked), did[0], did[1], w.promoted, did[2], did[3], did[4], len(lost), len(doubled))
	requests, unknown := w.histories.check(t)
	t.Logf("%d requests of %d keys have a history with one claim each; what became of %d of them nobody was told", requests, len(w.histories.of), unknown)
	if len(lost)+len(doubled) > 0 {
		t.Errorf("acknowledged and lost: %v; on record twice: %v", lost, doubled)
	}
	w.awaitDelivered(app)
	w.lose(on)
}

// account says what was acknowledged and is not on record, and what is on record more than once.
func (w *torture) account(on map[string][]string, acked map[string]bool) (lost, doubled []string) {
	for k := range acked {
		if len(on[k]) == 0 {
			lost = append(lost, k)
		}
	}
	for k, in := range on {
		if len(in) > 1 {
			doubled = append(doubled, k+" in "+strings.Join(in, ", "))
		}
	}
	return lost, doubled
}

// awaitDelivered waits until all that was acknowledged is delivered.
func (w *torture) awaitDelivered(app *sink) {
	var all []string
	for k := range w.acked {
		_, id, _ := strings.Cut(k, "/")
		all = append(all, id)
	}
	app.awaitIDs(w.t, all)
}

// lose loses a cell for good, gives it up, and sends copies of all that was ever acknowledged: they are new where they were
// on record in that cell, and duplicates elsewhere.
func (w *torture) lose(before map[string][]string) {
	t, gone, left := w.t, w.victims[2], w.victims[:2]
	gone.gone = true
	gone.kill()
	gone.gate.set(true)
	cfg, err := config.Load(config.Input{Path: left[0].path, Data: []byte(left[0].text()), ReadFile: os.ReadFile})
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenCells(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if left[0].weight+left[1].weight == 0 { // nobody would own anything
		left[0].weight = 1
		w.move(left[0])
		if err := b.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.ForgetCell(t.Context(), gone.name, time.Now(), "a test", "its disk is lost", time.Now()); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	some := slices.Sorted(maps.Keys(w.acked))
	some = some[:min(len(some), 400)]
	for part := range slices.Chunk(some, (len(some)+3)/4) {
		group.Go(func() {
			for _, k := range part {
				source, id, _ := strings.Cut(k, "/")
				w.insist(source, []string{id}, 1)
			}
		})
	}
	group.Wait()
	after := w.recorded(w.victims...)
	_, doubled := w.account(after, w.acked)
	window := 0
	for k, in := range after {
		if len(in) > 1 && !(slices.Equal(before[k], []string{gone.name}) && len(in) == 2) {
			t.Errorf("%s is on record in %v, and was in %v", k, in, before[k])
		}
		window += len(in) - 1
	}
	t.Logf("cell %s lost: %d of %d copies were new, all of which it had on record", gone.name, window, len(some))
	if lost, _ := w.account(w.recorded(left...), mapOf(some)); len(lost) > 0 {
		t.Errorf("acknowledged again and lost: %v", lost)
	}
	if len(doubled) != window {
		t.Errorf("%d keys are on record twice, and %d are explained", len(doubled), window)
	}
	audits, err := b.store.Audits(t.Context(), 0, 10)
	if data, _ := json.Marshal(audits); err != nil || !strings.Contains(string(data), "forget_cell") {
		t.Errorf("the decision is not on record: %s, %v", data, err)
	}
}

func mapOf(keys []string) map[string]bool {
	m := map[string]bool{}
	for _, k := range keys {
		m[k] = true
	}
	return m
}
