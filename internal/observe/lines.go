package observe

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// maxLines is how many lines of one kind a source writes per second: strangers cause them.
const maxLines = 10

// lines writes lines of one kind to the log, at a bounded rate. What is held back is counted in the next line.
type lines struct {
	bucket     *rate.Limiter
	suppressed atomic.Int64
}

func newLines() *lines { return &lines{bucket: rate.NewLimiter(maxLines, maxLines)} }

func (l *lines) log(ctx context.Context, o Options, level slog.Level, text string, args ...any) {
	if !l.bucket.AllowN(o.Now(), 1) {
		l.suppressed.Add(1)
		return
	}
	if n := l.suppressed.Swap(0); n > 0 {
		args = append(args, "suppressed", n)
	}
	o.Logger.Log(ctx, level, text, args...)
}
