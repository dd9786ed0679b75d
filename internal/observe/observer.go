package observe

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// What the record may take up. Beyond it requests are forwarded and not recorded.
const (
	maxBodies  = 32 << 20 // bytes of requests that are forwarded or wait to be looked at
	maxWaiting = 1024     // requests that wait to be looked at
	maxPending = 16_384   // observations that wait for the store
	maxBatch   = 500      // observations in one statement
	lookers    = 4        // requests that are looked at at once: some wait for keys to be fetched
)

const (
	writeInterval = 250 * time.Millisecond // between two transactions
	retryInterval = time.Second            // when the store failed
	writeTimeout  = 5 * time.Second
	// MaxRows is how many observations of one source are kept; older ones go first.
	MaxRows       = 200_000
	maxStrange    = MaxRows / 10 // of them those that no signature vouched for: see [Kind.strange]
	maxEach       = 10           // such requests of one source that have a row of their own, between two transactions
	purgeInterval = 10 * time.Minute
	purgeAfter    = MaxRows / 10 // rows that were written, if that is sooner
)

// Observer looks at requests after they were answered, and writes what it saw. Nobody waits for it. It is safe for
// concurrent use.
type Observer struct {
	store        *Store
	metrics      *Metrics
	log          *slog.Logger
	now          func() time.Time
	keep         func(source string) time.Duration
	writeTimeout time.Duration

	bodies  *room
	waiting chan *request
	looking sync.WaitGroup
	some    chan struct{} // holds a token when something is pending
	ctx     context.Context
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	closed  bool
	pending []*row
	alike   map[likeness]*row // the pending rows that further requests are added to
	strange map[string]int    // pending rows of requests that no signature vouched for, by source
	writing int               // rows that are being written
	written int               // since old ones were deleted
	lost    map[string]int64  // requests that are not on record, by source
	last    int64             // identifier
}

// likeness is what requests have in common that stand in one row: strangers can send as many as they like.
type likeness struct {
	source  string
	kind    Kind
	reason  string
	status  int
	failure string
}

func likenessOf(o *Observation) likeness {
	return likeness{o.Source, o.Kind, o.Reason, o.Status, o.Failure}
}

// ObserverOptions are what a [Observer] needs besides its store.
type ObserverOptions struct {
	Metrics *Metrics
	Logger  *slog.Logger
	Now     func() time.Time
	// Keep says how long the observations of a source are kept. Zero: for ever.
	Keep func(source string) time.Duration
	// WriteTimeout is how long the store may take for a batch. Zero: 5 seconds.
	WriteTimeout time.Duration
}

// NewObserver starts an observer. Close must be called. The store need not be there yet.
func NewObserver(s *Store, o ObserverOptions) *Observer {
	r := &Observer{
		store: s, metrics: o.Metrics, log: o.Logger, now: o.Now, keep: o.Keep, writeTimeout: cmp.Or(o.WriteTimeout, writeTimeout),
		bodies: newRoom(maxBodies), waiting: make(chan *request, maxWaiting),
		some: make(chan struct{}, 1), stopped: make(chan struct{}), lost: map[string]int64{},
		alike: map[likeness]*row{}, strange: map[string]int{},
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	for range lookers {
		r.looking.Go(r.lookOn)
	}
	go r.write()
	return r
}

// look takes a request that was answered. It never waits.
func (r *Observer) look(q *request) {
	r.metrics.forwarded.WithLabelValues(q.source.Name, class(q.came.Status)).Inc()
	r.metrics.seconds.WithLabelValues(q.source.Name).Observe(q.came.Took.Seconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		select {
		case r.waiting <- q:
			return
		default:
		}
	}
	r.bodies.give(q.weight)
	r.lose(q.source.Name, 1, ReasonQueue)
}

// lose counts requests that are not on record. The caller holds the lock.
func (r *Observer) lose(source string, n int64, reason string) {
	r.metrics.unrecorded.WithLabelValues(source, reason).Add(float64(n))
	r.lost[source] += n
	r.wake()
}

func (r *Observer) wake() {
	select {
	case r.some <- struct{}{}:
	default:
	}
}

func (r *Observer) lookOn() {
	for q := range r.waiting {
		all := q.observations()
		r.bodies.give(q.weight)
		r.metrics.seen.WithLabelValues(q.source.Name, string(all[0].Kind)).Inc()
		r.add(q, all)
	}
}

// add gives observations to the writer, unless too many wait for it already.
func (r *Observer) add(q *request, all []Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason := all[0].Reason; all[0].Kind == Unread {
		r.metrics.unrecorded.WithLabelValues(q.source.Name, reason).Inc()
	}
	if q.further > 0 {
		r.metrics.unrecorded.WithLabelValues(q.source.Name, ReasonEvents).Add(float64(q.further))
	}
	if all[0].Kind.strange() && r.joined(&all[0]) {
		return
	}
	if len(r.pending)+r.writing+len(all) > maxPending {
		r.lose(q.source.Name, 1, ReasonStore)
		return
	}
	for _, o := range all {
		r.pending = append(r.pending, &row{r.nextID(), o})
	}
	if o := r.pending[len(r.pending)-1]; o.Kind.strange() {
		if r.strange[o.Source]++; r.strange[o.Source] > maxEach {
			r.alike[likenessOf(&o.Observation)] = o
		}
	}
	r.wake()
}

// joined adds a request to a row that is pending, if it is to share one.
func (r *Observer) joined(o *Observation) bool {
	same := r.alike[likenessOf(o)]
	if same != nil {
		same.Requests += o.Requests
	}
	return same != nil
}

// nextID returns an identifier that grows with time and that no other process is likely to draw. Writing a row
// again under it changes nothing.
func (r *Observer) nextID() int64 {
	const random = 22 // bits
	r.last = max(r.last+1, r.now().UnixMilli()<<random|rand.Int64N(1<<random))
	return r.last
}

// write writes what is pending, with a pause between transactions, and deletes what is old, until the end.
func (r *Observer) write() {
	defer close(r.stopped)
	old := time.NewTicker(purgeInterval)
	defer old.Stop()
	var failed error
	for {
		select {
		case <-r.some:
		case <-old.C:
			r.forget()
		case <-r.ctx.Done():
			r.tell(&failed, r.flush(true))
			return
		}
		r.tell(&failed, r.flush(false))
		if r.due() {
			r.forget()
		}
		interval := writeInterval
		if failed != nil {
			interval = retryInterval
			r.wake()
		}
		select {
		case <-time.After(interval):
		case <-r.ctx.Done():
		}
	}
}

// due reports whether so much was written that some is too much.
func (r *Observer) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written >= purgeAfter
}

// tell logs that the store began to fail, or works again.
func (r *Observer) tell(before *error, now error) {
	switch {
	case now != nil && *before == nil:
		r.log.Warn("observe: nothing can be recorded; requests are forwarded all the same, and it is tried again", "error", now)
	case now == nil && *before != nil:
		r.log.Info("observe: what is observed is recorded again")
	}
	*before = now
}

// flush writes what is pending, and what comes meanwhile only if that is a full batch, or all is wanted.
func (r *Observer) flush(all bool) error {
	for {
		rows := r.batch()
		if len(rows) == 0 {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), r.writeTimeout)
		refused, err := r.store.insert(ctx, rows)
		cancel()
		r.wrote(rows, refused, err)
		if err != nil || !all && len(rows) < maxBatch {
			return err
		}
	}
}

// batch takes the oldest rows, and one for the requests of each source that are not on record, unless there is one
// already: it comes first, also when it is taken back.
func (r *Observer) batch() []row {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.pending), maxBatch)
	var rows []row
	has := map[string]bool{}
	for _, o := range r.pending[:n] {
		has[o.Source] = has[o.Source] || o.Kind == Gap
	}
	for source, lost := range r.lost {
		if !has[source] {
			rows = append(rows, row{r.nextID(), Observation{Source: source, ReceivedAt: r.now(), Kind: Gap, Requests: lost}})
			delete(r.lost, source)
		}
	}
	for _, o := range r.pending[:n] {
		rows = append(rows, *o)
		if like := likenessOf(&o.Observation); r.alike[like] == o {
			delete(r.alike, like) // it is written as it is, and the next ones share another
		}
	}
	if r.pending = r.pending[n:]; len(r.pending) == 0 {
		clear(r.strange)
	}
	r.writing = len(rows)
	return rows
}

// wrote takes back what could not be written.
func (r *Observer) wrote(rows []row, refused []row, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = 0
	if err != nil {
		back := make([]*row, 0, len(rows)+len(r.pending))
		for i := range rows {
			back = append(back, &rows[i])
		}
		r.pending = append(back, r.pending...)
		return
	}
	r.written += len(rows)
	for _, o := range refused {
		r.lose(o.Source, o.Requests, ReasonStore)
	}
	if len(r.lost) > 0 {
		r.wake()
	}
}

// forget deletes what is old, or too much.
func (r *Observer) forget() {
	r.mu.Lock()
	r.written = 0
	r.mu.Unlock()
	if err := r.Forget(r.ctx); err != nil && r.ctx.Err() == nil {
		r.log.Warn("observe: old observations cannot be deleted; it is tried again", "error", err)
	}
}

// Forget deletes the observations that are older than they are to be kept, and those beyond [MaxRows]. What strangers
// send is bounded apart, so that they cannot push out what is on record of events.
func (r *Observer) Forget(ctx context.Context) error {
	sources, err := r.store.Sources(ctx)
	if err != nil {
		return err
	}
	for _, source := range sources {
		before := time.Time{}
		if keep := r.keep(source); keep > 0 {
			before = r.now().Add(-keep)
		}
		if err := r.store.forget(ctx, source, before, MaxRows); err != nil {
			return err
		}
		if err := r.store.forgetStrange(ctx, source, maxStrange); err != nil {
			return err
		}
	}
	return nil
}

// Close writes what was observed, as far as the store lets it within a few seconds, and ends. No request may be
// forwarded any more, or what is observed of it is lost.
func (r *Observer) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	close(r.waiting)
	r.looking.Wait()
	r.stop()
	<-r.stopped
}
