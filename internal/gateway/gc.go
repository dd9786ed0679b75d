package gateway

import (
	"runtime/debug"

	"github.com/hookonce/hookonce/internal/cells"
)

// gcPercent lets the heap grow to five times what is alive before it is collected. The gateway keeps
// little and allocates a few kilobytes per event: with the runtime's default, an eighth of the
// processor time under load went into collecting a small heap again and again. The heap alive under
// load is some 20 MiB.
const gcPercent = 400

// TuneGC makes the garbage collector fit a process whose work is the gateway, and returns a function
// that undoes it. It changes the whole process, so it is for the program to call and not for Start.
func TuneGC() (undo func()) {
	before := debug.SetGCPercent(gcPercent)
	return func() { debug.SetGCPercent(before) }
}

// GiveBack gives the memory that starting alone took back to the system, which otherwise has it after minutes, or never: a
// gateway that does nothing does not collect. It stops the whole process for a moment, so it is for the program to call, after
// Start, and not for Start.
func GiveBack() { debug.FreeOSMemory() }

// What is in memory beside what has a bound of its own that can be configured.
const (
	// connectionMemory is what a connection takes at most, and largeHeaderMemory what one of maxLargeHeaders takes on top.
	connectionMemory  = 32 << 10
	largeHeaderMemory = 32 << 10
	// otherMemory is more than all else takes: finished keys, what is recorded of observed requests and known of callers, and
	// the store's own caches. A gateway that does nothing has some 10 MiB of it.
	otherMemory = 128 << 20
)

// memoryBound returns what all bounds on memory come to in bytes, reading being that of requests. At five times what is
// alive the heap would be much larger when they are reached: that is when the collector has to run sooner.
func memoryBound(p *plan, reading int64) int64 {
	connections, admin := connectionLimits(p, descriptors())
	held := int64(connections.Max+admin.Max)*connectionMemory + maxLargeHeaders*largeHeaderMemory
	if p.cell.name != "" {
		reading += cells.MaxHanded(p.cell.maxBody) // of what other cells hand on
	}
	return otherMemory + reading + p.journal.QueueBytes + 2*p.journal.HeldBytes + held
}
