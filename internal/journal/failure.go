package journal

import (
	"time"

	"github.com/hookonce/hookonce/internal/retry"
)

// ErrorKind is why an attempt failed, or a delivery died without one, in one word of a closed set. It is decided
// where the attempt is made, and stored with the attempt and its delivery. Empty: nothing failed, or it did before
// kinds were stored.
type ErrorKind string

// The kinds of errors: those that an attempt can end with, and one that keeps a delivery from any.
const (
	ErrorStatus      = ErrorKind(retry.Status)      // an answer whose status is no success; [FailureGroup.Status] has it
	ErrorTimeout     = ErrorKind(retry.Timeout)     // no connection, or no answer, in time
	ErrorDNS         = ErrorKind(retry.DNS)         // the name of the host could not be resolved
	ErrorRefused     = ErrorKind(retry.Refused)     // nobody listens at the port
	ErrorReset       = ErrorKind(retry.Reset)       // the connection broke off before the answer was complete
	ErrorUnreachable = ErrorKind(retry.NoRoute)     // no way leads to the host
	ErrorTLS         = ErrorKind(retry.TLS)         // the certificate is not trusted, or the handshake failed
	ErrorAddress     = ErrorKind(retry.Address)     // delivery.allow_private or delivery.ports does not allow to connect there
	ErrorInvalid     = ErrorKind(retry.Invalid)     // what came is no answer in HTTP, or none that can be used
	ErrorBodyGone    = ErrorKind("body_gone")       // the body was deleted before the delivery was done
	ErrorOther       = ErrorKind(retry.Unspecified) // none of these
)

// ErrorKinds are all kinds of errors, in the order in which pages name them.
func ErrorKinds() []ErrorKind {
	return []ErrorKind{ErrorStatus, ErrorTimeout, ErrorDNS, ErrorRefused, ErrorReset, ErrorUnreachable, ErrorTLS,
		ErrorAddress, ErrorInvalid, ErrorBodyGone, ErrorOther}
}

// BodyGone is the error of a delivery that is dead because there is nothing to deliver any more.
const BodyGone = "the body is gone: it was deleted before the delivery was done"

// Bounds of what [Reader.FailureGroups] returns.
const (
	// MaxFailureGroups is how many groups a destination has, of the open ones and of the resolved ones.
	MaxFailureGroups = 50
	// MaxFailureCount is how far the deliveries of one group are counted.
	MaxFailureCount = 10_000
	// FailureSamples is how many deliveries of a group are shown, those of the newest events.
	FailureSamples = 3
)

// Failures are the groups of deliveries that failed, sorted by destination, kind and status.
type Failures struct {
	// Open are groups of deliveries that are failed or dead at this moment. One that is being tried again is in
	// none until the attempt has ended.
	Open []FailureGroup
	// Resolved are groups of attempts that failed since the time that was asked for, of which no delivery is failed
	// or dead any more.
	Resolved []FailureGroup
	// More says that groups are left out, or may be: a destination has more than [MaxFailureGroups], of the resolved ones
	// at any time that is kept.
	More bool
}

// FailureGroup is what failed at one destination for one reason.
type FailureGroup struct {
	Destination string
	Kind        ErrorKind
	Status      int    // HTTP status of the answers; 0: there were none
	Error       string // the text that the latest sample has
	// Count is how many deliveries are failed or dead; of a resolved group, how many attempts failed. AtLeast says
	// that there are more: counting ended at [MaxFailureCount].
	Count   int64
	AtLeast bool
	// Dead is how many of an open group are dead, counted among the first [MaxFailureCount] as well.
	Dead int64
	// Since is when the first attempt failed that the group knows of: of the oldest event that is open in it, or of
	// a resolved one the first since the time that was asked for. Latest is when the last one failed. Both are when the
	// attempt began; of deliveries that died without one, when their events were accepted.
	Since, Latest time.Time
	// Samples are deliveries of the group, those of the newest events first, at most [FailureSamples].
	Samples []FailureSample
}

// FailureSample is a delivery that failed, with its last attempt.
type FailureSample struct {
	EventID int64
	Source  string
	Key     string // empty: unkeyed
	Type    string
	State   State     // of the delivery; [Done] if it is not open any more
	Started time.Time // when the attempt began; zero if there was none
	Error   string
	Excerpt []byte // how the destination's answer begins; at most [MaxExcerpt] bytes, of any kind
}

// CutFailures marks the groups of which there is more than was counted, and leaves out those of a destination, which
// come together, that are beyond [MaxFailureGroups]. It is for stores, which look for one more than is returned.
func CutFailures(groups []FailureGroup) (kept []FailureGroup, cut bool) {
	n := 0
	for i, g := range groups {
		if n++; i == 0 || groups[i-1].Destination != g.Destination {
			n = 1
		}
		if n > MaxFailureGroups {
			cut = true
			continue
		}
		if g.Count > MaxFailureCount {
			g.Count, g.AtLeast = MaxFailureCount, true
			g.Dead = min(g.Dead, MaxFailureCount)
		}
		kept = append(kept, g)
	}
	return kept, cut
}
