package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultLogSize is where the log is copied back into the file, in bytes. The file is synced after
	// that, and a commit that syncs the log meanwhile waits for the same disk: at half load, 99 of 100
	// events were acknowledged within 10 ms with 4 MiB and within 25 ms with 48 MiB. A page that was
	// written several times is copied once, so the larger log accepted 8 % more events per second.
	defaultLogSize = 4 << 20
	// hardLimit is how many times that size the log has when the writer stops and copies by itself,
	// because the machine does not let the checkpointer keep up.
	hardLimit = 4
	// restLimit is how many pages may be left to copy while commits wait.
	restLimit = 64
	// maxPasses bounds the attempts to come below it while the writer keeps adding.
	maxPasses = 4
	// largeLog is how many times that size the log is told of while a reader holds it, and shrunk to nothing when the
	// reader is gone. It is well above what the log has without one.
	largeLog = 4 * hardLimit
	// tendEvery is how often a log that a reader held is looked at again, and how long a file that is gone stays unnoticed
	// while nothing is stored.
	tendEvery = time.Second
)

// checkpointer copies the log back into the file, on a connection that no question takes from it. Almost all of that
// happens beside the commits. Only the rest is copied with the writer held, because the log can start
// over from its beginning only when all of it has been copied: that is what bounds it.
//
// Every checkpoint is a passive one, which waits for nobody. The log cannot start over while somebody
// reads an older state of the file, such as a backup, and grows for as long as that takes; waiting for
// the reader would hold up every commit instead. When the reader is gone the log is copied, and its file, which would
// stay as large as it was, is cut.
type checkpointer struct {
	store     *Store
	connector driver.Connector
	wake      chan struct{}
	cancel    context.CancelFunc
	done      sync.WaitGroup

	next atomic.Int64 // bytes of the log below which no checkpoint is tried, because a reader holds it; 0: nobody does
	told int64        // bytes that the log had when that was logged last; 0: it is not large

	mu sync.Mutex // SQLite refuses a checkpoint while there is another; it is taken after the turn to write
}

func startCheckpointer(s *Store, connector driver.Connector) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpointer{store: s, connector: connector, wake: make(chan struct{}, 1), cancel: cancel}
	c.done.Go(func() { c.run(ctx) })
	return c
}

// request asks for a checkpoint and does not wait for it.
func (c *checkpointer) request() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checkpointer) stop() {
	c.cancel()
	c.done.Wait()
}

func (c *checkpointer) run(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		work := c.checkpoint
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-tick.C:
			work = c.tend
		}
		if c.store.Standing() != nil || c.store.exclusive(ctx, c.store.whole) != nil {
			continue // somebody may want to copy the files as they are
		}
		if err := work(ctx); err != nil && ctx.Err() == nil {
			c.store.log.ErrorContext(ctx, "journal/sqlite: the write-ahead log cannot be copied back and grows",
				"file", c.store.path, "error", err)
		}
	}
}

// tend copies what a reader kept from being copied, says how large the log becomes meanwhile, and shrinks it after that.
func (c *checkpointer) tend(ctx context.Context) error {
	log, copied, err := c.pragma(ctx, "NOOP")
	size := int64(log) * c.store.pageSize
	if err == nil && copied < log && size >= c.store.logSize {
		err = c.checkpoint(ctx)
	}
	large := largeLog * c.store.logSize
	switch {
	case err != nil:
		return err
	case c.next.Load() > 0 && size >= max(large, 2*c.told):
		c.told = size
		c.store.log.WarnContext(ctx, "journal/sqlite: the write-ahead log grows, because another program reads an old state of the file; "+
			"events are accepted until the disk is full: find who has the file open (fuser -v) and end that", "file", c.store.path, "log_bytes", size)
	case c.next.Load() == 0 && c.store.logFile() >= large:
		err = c.shrink(ctx)
	}
	if err == nil && c.told > 0 && c.store.logFile() < large {
		c.store.log.InfoContext(ctx, "journal/sqlite: the write-ahead log is small again", "file", c.store.path, "log_bytes", c.store.logFile(), "was_bytes", c.told)
		c.told = 0
	}
	return err
}

// shrink cuts a log that was copied to nothing, unless somebody reads it at this moment. Commits wait for the cut only.
func (c *checkpointer) shrink(ctx context.Context) (err error) {
	own, err := connect(ctx, c.connector)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.close()) }()
	if _, err := own.value("PRAGMA busy_timeout = 0"); err != nil { // nobody is waited for: it is tried again
		return err
	}
	return c.store.exclusive(ctx, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, err := own.value("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
}

// settle notes whether a checkpoint that nobody added to meanwhile came to the end of the log. If it did not, a reader is
// in the way, and trying again at every commit would cost more the longer the log is: SQLite sorts its pages each time.
func (c *checkpointer) settle(log, copied int) {
	size := int64(log) * c.store.pageSize
	if copied >= log {
		size = 0
	} else {
		size = size + max(c.store.logSize, size/8)
	}
	c.next.Store(size)
}

// checkpoint copies what it can beside the writer, and the rest in its way.
func (c *checkpointer) checkpoint(ctx context.Context) error {
	log, copied, err := c.pragma(ctx, "NOOP")
	for pass := 0; err == nil && pass < maxPasses && log-copied >= restLimit; pass++ {
		if _, _, err = c.pragma(ctx, "PASSIVE"); err == nil {
			log, copied, err = c.pragma(ctx, "NOOP")
		}
	}
	if err != nil {
		return err
	}
	return c.store.exclusive(ctx, func() error {
		log, copied, err := c.pragma(ctx, "PASSIVE")
		if err == nil {
			c.settle(log, copied)
		}
		return err
	})
}

// pragma runs a checkpoint of the given kind and returns how many pages the log has and how many of
// them have been copied.
func (c *checkpointer) pragma(ctx context.Context, kind string) (log, copied int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var busy int
	err = c.store.inner.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+kind+")").Scan(&busy, &log, &copied)
	return log, copied, err
}

// boundLog asks for a checkpoint when the log has become long, and makes one when it has become too
// long. It is called after each commit, by who made it.
func (s *Store) boundLog(ctx context.Context) error {
	log, err := s.logPages()
	log *= s.pageSize
	switch {
	case err != nil:
		return err
	case log < s.checkpoints.next.Load():
	case log >= hardLimit*s.logSize:
		var pages, copied int
		if pages, copied, err = s.checkpoints.pragma(context.WithoutCancel(ctx), "PASSIVE"); err == nil {
			s.checkpoints.settle(pages, copied)
		}
	case log >= s.logSize:
		s.checkpoints.request()
	}
	return err
}
