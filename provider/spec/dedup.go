package spec

import "time"

// Dedup says what a repetition means.
type Dedup struct {
	// OnRepeat is what happens to an event whose key was seen before. Default [Drop].
	OnRepeat Repeat `yaml:"on_repeat,omitempty"`
	// Same lists the content that is equal in every copy of an event; it makes Event.Digest. Empty
	// means the whole body, or the whole item. Senders that change the body between attempts need it.
	Same []Value `yaml:"same,omitempty,flow"`
	// Retry and Manual say whether the key stays the same when the sender retries, and when a person
	// has the event sent again.
	Retry  Stability `yaml:"stable_on_retry,omitempty"`
	Manual Stability `yaml:"stable_on_resend,omitempty"`
	// Logical lists the rules that recognise logical duplicates: distinct events for one change. The first that is for
	// the event's type, and whose parts are there, makes Event.Logical. The library does nothing else
	// with it. The gateway delivers the second of two logical duplicates with the header Hookonce-Logical-Duplicate-Of, or stores it
	// and does not deliver it, where somebody opted into that for its type.
	Logical []Logical `yaml:"logical,omitempty"`
}

// Repeat names what a repetition means.
type Repeat string

// The meanings of a repetition.
const (
	// Drop: it is a copy. Other content under the same key is flagged as a conflict, and dropped.
	Drop Repeat = "drop"
	// KeepLatest: the sender corrects itself under the same key. Equal content is a copy; other
	// content is a newer edition of the event and passes on.
	KeepLatest Repeat = "keep_latest"
	// Coalesce: the event only says that something changed. It adds nothing while an earlier one waits
	// to be handled, and counts as new once that one has begun.
	Coalesce Repeat = "coalesce"
	// Off: nothing recognises a copy. Every request passes on, unkeyed.
	Off Repeat = "off"
)

// Stability says whether a key is the same in every copy.
type Stability string

// The stabilities. Empty means that no source says.
const (
	Stable   Stability = "yes"
	Unstable Stability = "no"
	// NotSent: the sender does not send that kind of copy.
	NotSent Stability = "not sent"
)

// Logical recognises logical duplicates.
type Logical struct {
	// Types lists the event types that the rule is for. Empty: all, which only Flag may have.
	Types []string `yaml:"types,omitempty,flow"`
	// Key lists the parts of the logical key. All but a last one with "?" are required.
	Key []Value `yaml:"key,flow"`
	// Window is how far apart logical duplicates arrive at the most. The gateway cuts time into windows of that length,
	// the shortest of all rules, and looks for logical duplicates within one: those on the two sides of a cut are
	// taken for different. Zero: as long as the first is remembered.
	Window time.Duration `yaml:"window,omitempty"`
	// Mode is what the gateway does with the second. Default [Flag]. A source of the gateway can have
	// the logical duplicates of further types dropped, with logical_duplicates: {drop: [...]}.
	Mode LogicalDuplicateMode `yaml:"mode,omitempty"`
}

// LogicalDuplicateMode names what the gateway does with the second of two logical duplicates.
type LogicalDuplicateMode string

// The modes.
const (
	// Flag: it is delivered, with a header that names the first.
	Flag LogicalDuplicateMode = "flag"
	// DropLogicalDuplicate: it is stored and not delivered. For the types that somebody opted into, by name.
	DropLogicalDuplicate LogicalDuplicateMode = "drop"
)

// Order says what tells a newer state of a resource from an older one. It makes Event.Rank, and
// Event.Version where it is a version. In handlers [hookonce.Newer] goes by it. A destination of the
// gateway can have events flagged or dropped that are older than one that was delivered.
type Order struct {
	// By is the version or the time.
	By Value `yaml:"by"`
	// Unit is how a time is written. Empty: By is a version, an integer that is higher for each state. It
	// decides the kind of Event.Rank, and with it what equal ones mean: see [hookonce.Rank].
	Unit Unit `yaml:"unit,omitempty"`
	// Scope identifies what the order holds for, inside of Event.Tenant; with that it makes Event.Scope.
	// Default: Event.Resource.
	Scope []Value `yaml:"scope,omitempty,flow"`
	// Advisory is set if the sender does not promise the order. Event.Rank is filled in all the same; the
	// configuration warns where a destination drops events by it.
	Advisory bool `yaml:"advisory,omitempty"`
}
