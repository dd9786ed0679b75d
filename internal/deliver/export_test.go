package deliver

// NewWith returns a deliverer whose attempts are made by the transport, if it is not nil, and whose retries have
// the jitter.
var NewWith = newDeliverer
