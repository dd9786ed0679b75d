package engine

// Full reports whether the queue is at one of its bounds at this moment, so that the next Accept
// would most likely be refused with [journal.ErrFull].
func (j *Engine) Full() bool {
	entries, bytes := j.queue.depth()
	return entries >= j.queue.maxEntries || bytes >= j.queue.maxBytes
}
