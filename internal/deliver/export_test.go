package deliver

// NewWith returns a deliverer whose attempts are made by the transport, if it is not nil, and whose retries have
// the jitter.
var NewWith = newDeliverer

// MaxReply is the size of the largest answer that is passed on.
const MaxReply = maxReply
