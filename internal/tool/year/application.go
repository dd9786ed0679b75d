package year

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
)

// application is a destination. What it has stored outlives its processes.
type application struct {
	*world
	name    string
	handler http.Handler

	mu      sync.Mutex
	life    int // number of the process
	alive   bool
	server  *http.Server
	failing int // requests that are refused next
	with    int // their status
	slow    time.Duration
	holds   time.Duration // that the handler takes, within its claim
	until   time.Time
	answers int      // given so far
	commits []string // what becomes of the next commits
}

// What becomes of a commit of the application that claims.
const (
	commitFails  = "commit-fails"       // it does not happen, and is told to have an unknown outcome
	commitLost   = "commit-lost"        // it happens, and is told so
	commitBefore = "commit-dies-before" // the application dies before it
	commitAfter  = "commit-dies-after"  // and after it
)

var errApplication = errors.New("the application fails")

// newClaiming returns the application that claims what it gets: effect and claim are one transaction.
func (w *world) newClaiming() *application {
	a := &application{world: w, name: claiming}
	store := memstore.New(memstore.WithCommit(a.commit))
	a.handler = hookonce.Webhook(store, claiming, provider.Hookonce(shopSecret, shopSecretOld), a.handle, hookonce.WithLogger(quiet))
	return a
}

// newDirect returns the application that senders come to themselves: what they sign it verifies, and claims in the same way.
func (w *world) newDirect() *application {
	a := &application{world: w, name: direct}
	store, mux := memstore.New(memstore.WithCommit(a.commit)), http.NewServeMux()
	for _, s := range sources() {
		mux.Handle("/in/"+s, hookonce.Webhook(store, s, w.providerOf(s, secretOf(s)), a.handle, hookonce.WithLogger(quiet)))
	}
	a.handler = mux
	return a
}

var quiet = slog.New(slog.DiscardHandler)

// handle is the handler of those that claim.
func (a *application) handle(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
	name := named(ev.Body)
	if err := a.hold(ctx); err != nil {
		return err
	}
	if a.fails() > 0 {
		return errApplication
	}
	tx.OnCommit(func() { a.effect(a.name, name) })
	return nil
}

// hold has a handler take its time, if it is to. Whoever asked may have hung up long before.
func (a *application) hold(ctx context.Context) error {
	a.mu.Lock()
	holds, life := a.holds, a.life
	if time.Now().After(a.until) {
		holds = 0
	}
	a.mu.Unlock()
	if holds == 0 {
		return nil
	}
	a.fired("application/holds")
	began := time.Now()
	select {
	case <-time.After(holds):
	case <-ctx.Done():
		a.mu.Lock()
		same := a.life == life
		a.mu.Unlock()
		if took := time.Since(began); same && took < hookonce.DefaultTimeout-3*time.Second {
			a.breaks("a hang-up cancels nothing", "%s had a handler end after %v: %v", a.name, took, ctx.Err())
		}
		return context.Cause(ctx)
	}
	return nil
}

// newPlain returns the application that claims nothing.
func (w *world) newPlain() *application {
	a := &application{world: w, name: plain}
	a.handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if status := a.fails(); status > 0 {
			rw.WriteHeader(status)
		}
	})
	return a
}

// commit is what a database makes of a commit.
func (a *application) commit(persist func()) error {
	a.mu.Lock()
	what := ""
	if len(a.commits) > 0 {
		what, a.commits = a.commits[0], a.commits[1:]
	}
	alive := a.alive
	a.mu.Unlock()
	if !alive {
		return errDead
	}
	if what != "" {
		a.fired("application/" + what)
		a.log(a.name, "commit: "+what)
	}
	switch what {
	case commitFails:
		return errApplication
	case commitLost:
		persist()
		return errApplication
	case commitBefore:
		a.die(5 * time.Second)
		return errDead
	case commitAfter:
		persist()
		a.die(5 * time.Second)
		return errDead
	}
	persist()
	return nil
}

// fails returns the status of a failure that is due, or 0.
func (a *application) fails() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failing == 0 {
		return 0
	}
	a.failing--
	a.ledger.fired("application/fails")
	return a.with
}

// arm has it misbehave.
func (a *application) arm(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// heal has it behave.
func (a *application) heal() {
	a.arm(func() { a.failing, a.slow, a.holds, a.commits = 0, 0, 0, nil })
}

// ServeHTTP books what comes and goes.
func (a *application) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	life, slow := a.life, a.slow
	if time.Now().After(a.until) {
		slow = 0
	}
	a.mu.Unlock()
	var f *fact
	n := 0
	if a.name == direct {
		f = a.came(a.name, allNamed(body))
	} else {
		f, n = a.arrived(a.name, a.network.whose(r.RemoteAddr), named(body), r.Header)
	}
	if f == nil {
		rw.WriteHeader(http.StatusTeapot)
		return
	}
	if slow > 0 {
		a.fired("application/slow")
		time.Sleep(slow)
	}
	number := a.answer()
	rw.Header().Set(answerHeader, number)
	kept := &kept{ResponseWriter: rw, status: http.StatusOK}
	r.Body = io.NopCloser(&bytesReader{body})
	a.handler.ServeHTTP(kept, r)
	a.mu.Lock()
	alive := a.alive && a.life == life
	a.mu.Unlock()
	if alive && a.name != direct {
		a.answered(a.name, f, n, kept.status, number)
	}
}

// answerHeader tells one answer from all others.
const answerHeader = "X-Answer"

// answer is the number of the next answer.
func (a *application) answer() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers++
	return a.name + "-" + strconv.Itoa(a.answers)
}

// kept remembers the status of an answer.
type kept struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (k *kept) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

type bytesReader struct{ data []byte }

func (b *bytesReader) Read(p []byte) (int, error) {
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

// up starts a process of it.
func (a *application) up() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.alive {
		return
	}
	l, err := a.network.listen(a.name, a.name+":80")
	if err != nil {
		panic(err)
	}
	a.alive, a.life = true, a.life+1
	a.server = &http.Server{Handler: a}
	server := a.server
	a.tasks.Go(func() { _ = server.Serve(l) })
}

// die ends its process, and starts another one after a while.
func (a *application) die(rest time.Duration) {
	a.down()
	a.fired("application/dies")
	a.log(a.name, "dies")
	a.tasks.Go(func() {
		time.Sleep(rest)
		a.up()
	})
}

// down ends its process.
func (a *application) down() {
	a.mu.Lock()
	server, alive := a.server, a.alive
	a.alive = false
	a.mu.Unlock()
	if alive {
		a.network.drop(a.name)
		a.tasks.Go(func() { _ = server.Close() })
	}
}
