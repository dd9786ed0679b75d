package journal

// Twins reports whether the entry takes part in the comparison of logical keys. An event without a key
// of its own does not: nothing says whether it is a twin or a copy.
func (e *Entry) Twins() bool { return e.Logical != "" && e.Key != "" && !Coalesces(e.Key) }

// dropped reports whether e, which is new, was stored without deliveries because of an earlier twin.
func (r Result) dropped(e *Entry) bool { return r.Twin != 0 && e.DropTwin }
