//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// runner has what the attacks share, and what belongs to the one that is under way.
type runner struct {
	settings
	dir     string
	cluster *pgtest.Cluster // nil on SQLite

	place   string // folder of the attack under way
	dsn     string // its database, on Postgres
	gateway *gateway
	app     *app
	sender  *genuine

	mu      sync.Mutex
	hostile map[string]int
	notes   []string
	broken  []string
}

func openRunner(ctx context.Context, s settings) (*runner, error) {
	dir, err := os.MkdirTemp(s.dir, "hookonce-attack-")
	if err != nil {
		return nil, err
	}
	rn := &runner{settings: s, dir: dir}
	if rn.binary == "" {
		if rn.binary, err = build(ctx, dir); err != nil {
			return nil, errors.Join(err, rn.Close())
		}
	}
	if rn.binary, err = filepath.Abs(rn.binary); err != nil {
		return nil, errors.Join(err, rn.Close())
	}
	switch s.store {
	case "sqlite":
	case "postgres":
		if rn.cluster, err = pgtest.Open(pgtest.Options{Fsync: true}); err != nil {
			return nil, errors.Join(err, rn.Close())
		}
	default:
		return nil, errors.Join(fmt.Errorf("there is no store %q: sqlite or postgres", s.store), rn.Close())
	}
	return rn, nil
}

// Close stops the database and removes all files.
func (rn *runner) Close() error {
	var err error
	if rn.cluster != nil {
		err = rn.cluster.Close()
	}
	return errors.Join(err, os.RemoveAll(rn.dir))
}

// n is how many connections or requests an attack makes that makes so many at full size.
func (rn *runner) n(full int) int {
	if rn.small {
		return min(full, max(full/25, 8))
	}
	return full
}

// count notes what an attacker was answered.
func (rn *runner) count(what string) {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	rn.hostile[what]++
}

// note keeps what the table is to say besides.
func (rn *runner) note(format string, args ...any) {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	rn.notes = append(rn.notes, fmt.Sprintf(format, args...))
}

// breaks says that a bound did not hold.
func (rn *runner) breaks(format string, args ...any) {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	rn.broken = append(rn.broken, fmt.Sprintf(format, args...))
}

// play makes one attack on a gateway of its own.
func (rn *runner) play(ctx context.Context, a attack) (r result, err error) {
	r = result{Name: a.name, What: a.what, MemoryBound: a.memoryBound()}
	if rn.place, err = os.MkdirTemp(rn.dir, a.name+"-"); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(rn.place)) }()
	rn.hostile, rn.notes, rn.broken = map[string]int{}, nil, nil
	if rn.app, err = startApp(a.appHeader); err != nil {
		return r, err
	}
	defer rn.app.Close()
	config, err := rn.config(a)
	if err != nil {
		return r, err
	}
	rn.gateway, err = startGateway(rn.binary, rn.place, config, a.files, rn.show())
	if err != nil && strings.Contains(err.Error(), `"new_keys"`) { // of a version that has no such bound
		rn.gateway, err = startGateway(rn.binary, rn.place, strings.ReplaceAll(config, newKeys, ""), a.files, rn.show())
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rn.gateway.end(syscall.SIGKILL)) }()
	rn.sender = newGenuine(rn.gateway.listen)
	if err := rn.underAttack(ctx, a, &r); err != nil {
		return r, err
	}
	rn.settle(ctx, a, &r)
	rn.mu.Lock()
	defer rn.mu.Unlock()
	r.Hostile, r.Notes, r.Broken = maps.Clone(rn.hostile), rn.notes, rn.broken
	r.judge(a, rn.least())
	if r.Genuine.HeldUp > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the machine held up %d requests", r.Genuine.HeldUp))
	}
	return r, ctx.Err()
}

// least is how many of 100 requests must be answered in time: none in small, where there are a few dozen, beside the
// tests of other packages.
func (rn *runner) least() float64 {
	if rn.small {
		return 0
	}
	return leastShare
}

func (rn *runner) show() io.Writer {
	if rn.logs {
		return os.Stderr
	}
	return io.Discard
}

// underAttack has the genuine sender and those who ask for health go on while the attack takes place.
func (rn *runner) underAttack(ctx context.Context, a attack, r *result) error {
	ask := rn.sender.event
	if a.calls {
		ask = rn.sender.call
	}
	if status, err := ask(1 << 20); err != nil || status/100 != 2 {
		return fmt.Errorf("the gateway does not work before the attack: %d, %w", status, err)
	}
	began, before := time.Now(), rn.gateway.logged()
	attacked, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	defer time.AfterFunc(max(rn.duration, a.atLeast), func() {
		close(over)
		if !a.whole {
			stop()
		}
	}).Stop()
	var all sync.WaitGroup
	all.Go(func() { rn.guard(attacked) })
	rate := 50
	if a.rate > 0 {
		rate = a.rate
	}
	all.Go(func() { r.Genuine = steady(attacked, rate, ask) })
	health := newClients()
	for path, to := range map[string]*seen{"/healthz": &r.Health, "/readyz": &r.Ready} {
		all.Go(func() {
			*to = steady(attacked, 5, func(n int) (int, error) {
				req, err := http.NewRequest(http.MethodGet, "http://"+rn.gateway.admin+path, nil)
				if err != nil {
					return 0, err
				}
				status, _, err := health.do(n, req)
				return status, err
			})
		})
	}
	err := a.run(attacked, rn)
	if err == nil {
		select {
		case <-attacked.Done():
		case <-over:
		}
	}
	stop()
	all.Wait()
	r.Lines, r.LinesBound = rn.gateway.logged()-before, a.linesBound(time.Since(began))
	return err
}

// tooMuch is at what size of the gateway the machine's other programs come first.
const tooMuch = 6 << 30

// guard kills a gateway that takes the machine's memory.
func (rn *runner) guard(ctx context.Context) {
	for ctx.Err() == nil {
		if n, err := rn.gateway.memory(); err == nil && n > tooMuch {
			rn.breaks("killed, for it took more than %s", mib(tooMuch))
			_ = rn.gateway.cmd.Process.Kill()
			return
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// deliveredIn is how long after an attack the last acknowledged event may be delivered.
const deliveredIn = time.Minute

// settle looks at what the attack left, once all that was acknowledged had time to be delivered.
func (rn *runner) settle(ctx context.Context, a attack, r *result) {
	deadline := time.Now().Add(deliveredIn)
	for {
		r.Lost, r.Doubled = rn.sender.outstanding(rn.app)
		if r.Lost == 0 || a.refuses || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
		pause(ctx, 20*time.Millisecond)
	}
	if a.refuses {
		r.Lost = 0 // the attack looks at that itself
	}
	if a.check != nil && ctx.Err() == nil {
		a.check(ctx, rn)
	}
	var err error
	if r.Memory, err = rn.gateway.memory(); err != nil {
		rn.breaks("the gateway ended: %v", rn.gateway.cmd.ProcessState)
	}
}

// config returns the configuration of a gateway for an attack: a shop whose events are delivered, a source of
// batches, a source with handshakes, and services behind mode: idempotency.
func (rn *runner) config(a attack) (string, error) {
	store := "sqlite:" + filepath.Join(rn.place, "hookonce.db")
	if rn.cluster != nil {
		var err error
		if rn.dsn, err = rn.cluster.CreateDatabase(); err != nil {
			return "", err
		}
		store = rn.dsn
	}
	if err := os.WriteFile(filepath.Join(rn.place, "token"), []byte(operatorToken), 0o600); err != nil {
		return "", err
	}
	text := configuration
	if a.observed {
		text += observedSource
	}
	return strings.NewReplacer("{store}", store, "{app}", rn.app.url, "{tokens}", a.tokens).Replace(text), nil
}

const observedSource = `  - {name: watched, mode: observe, provider: standard, secrets: ["` + shopSecret + `"], to: "{app}/observed"}
`

var newKeys = fmt.Sprintf("new_keys: %d, ", rowsOfAddress)

var configuration = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: "{store}"
{tokens}
destinations:
  - {name: app, url: "{app}/events", backoff: 100ms, backoff_max: 1s, concurrency: 64}
sources:
  - {name: shop, provider: standard, secrets: ["` + shopSecret + `"], routes: [{to: app}]}
  - {name: pages, provider: meta, secrets: ["a-fake-secret-of-pages"], handshakes: true, token: a-fake-verify-token, routes: [{to: app}]}
  - name: batches
    provider: custom
    secrets: ["` + batchSecret + `"]
    max_body: 3MiB
    routes: [{to: app, types: [item]}]
    spec:
      verify: [{signature: {in: header:X-Signature}, sign: [body]}]
      split: {items: ["json:$.items[*]"]}
      event: {key: [["item:$.id"]], type: ["item:$.type"]}
      dedup: {stable_on_retry: yes}
      limits: {retry: 1d}
  - {name: charges, mode: idempotency, to: "{app}/charges", idempotency: {` + newKeys + `scope: ["header:Authorization"]}}
  - {name: mine, mode: idempotency, to: "{app}/mine", idempotency: {scope: ["header:X-Tenant"]}}
`

// asTimeout reports whether err says that time ran out.
func asTimeout(err error, to *net.Error) bool { return errors.As(err, to) && (*to).Timeout() }
