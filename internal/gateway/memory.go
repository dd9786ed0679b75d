package gateway

import "runtime/debug"

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
