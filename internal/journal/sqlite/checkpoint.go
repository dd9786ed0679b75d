package sqlite

import (
	"context"
	"sync"
)

// The log is copied back into the file when it has grown beyond softLimit. Every page that was
// written several times meanwhile is copied once, which is why this is not smaller; a crash has to
// read the log when the store is opened next, which is why it is not larger.
const (
	softLimit = 16 << 20 / pageSize // pages
	// restLimit is how many pages may be left to copy while commits wait.
	restLimit = 256
	// maxPasses bounds the attempts to come below it while writers keep adding.
	maxPasses = 4
)

// checkpointer copies the log back into the file, on a connection of its own. Almost all of that
// happens beside the commits. Only the rest is copied with the writer held, because the log can start
// over from its beginning only when all of it has been copied: that is what bounds it.
type checkpointer struct {
	store  *Store
	wake   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func startCheckpointer(s *Store) *checkpointer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpointer{store: s, wake: make(chan struct{}, 1), cancel: cancel}
	c.done.Go(func() { c.run(ctx) })
	return c
}

// note says that there was a commit.
func (c *checkpointer) note() {
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		if err := c.checkpoint(ctx); err != nil && ctx.Err() == nil {
			c.store.log.ErrorContext(ctx, "journal/sqlite: the write-ahead log can not be copied back and grows",
				"file", c.store.path, "error", err)
		}
	}
}

// checkpoint does its work if the log is long.
func (c *checkpointer) checkpoint(ctx context.Context) error {
	log, copied, err := c.pragma(ctx, "NOOP")
	if err != nil || log < softLimit {
		return err
	}
	for pass := 0; pass < maxPasses && log-copied >= restLimit; pass++ {
		if _, _, err = c.pragma(ctx, "PASSIVE"); err != nil {
			return err
		}
		if log, copied, err = c.pragma(ctx, "NOOP"); err != nil {
			return err
		}
	}
	return c.store.exclusive(ctx, func() error {
		_, _, err := c.pragma(ctx, "RESTART")
		return err
	})
}

// pragma runs a checkpoint of the given kind and returns how many pages the log has and how many of
// them have been copied.
func (c *checkpointer) pragma(ctx context.Context, kind string) (log, copied int, err error) {
	var busy int
	err = c.store.readers.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+kind+")").Scan(&busy, &log, &copied)
	return log, copied, err
}
