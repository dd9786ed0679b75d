package journal

import (
	"context"
)

// Notifier lets the processes on one store wake each other. Work does not depend on it: whoever hears nothing finds
// the same when it polls. What a process remembers as done it forgets with every ring, because somebody may have
// replayed it; one that cannot hear remembers nothing. It is rung after the commit, and never for ordinary events.
type Notifier interface {
	// Notify wakes everybody who listens, the caller included. It may be lost.
	Notify(ctx context.Context) error
	// Listen calls heard after every ring, and whenever some may have been missed, until ctx ends. It
	// returns sooner if this process cannot hear. heard does not block.
	Listen(ctx context.Context, heard func())
}
