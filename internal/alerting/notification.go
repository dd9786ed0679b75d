// Package alerting remembers what is wrong, decides who is told of it, and sees to it that they are: a life cycle over the
// verdicts of package alert, which one gateway of all that share a store evaluates at a time.
//
// What changes and what is to be told are one transaction. What was to be told is told at least once, always under the same
// key. What is wrong with the store itself is judged in the memory of each process and told without it.
package alerting

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
)

// State is what a [Notification] tells of an alert.
type State string

// The states.
const (
	Firing   State = "firing"   // it began, or became more severe
	Repeat   State = "repeat"   // it lasts, and nobody acknowledged it
	Resolved State = "resolved" // it is over
)

// Notification tells one thing about one alert.
type Notification struct {
	// Key is the same whenever this is sent again, by whichever gateway, and another one for all else: the fingerprint, an at
	// sign, when it began to fire, a number sign, and the transition; of what is wrong with the store itself, which no store can
	// number, the fingerprint, an at sign, the five minutes in which it began to fire, and what is told.
	Key string `json:"key"`
	// Fingerprint tells alerts apart: all notifications of one have the same. A pager groups by it. It is that of the alert,
	// after the name of the installation, if that has one, and a colon.
	Fingerprint  string         `json:"fingerprint"`
	Installation string         `json:"installation,omitempty"`
	Transition   int64          `json:"transition,omitempty"`
	Rule         string         `json:"rule"`
	Subject      string         `json:"subject,omitempty"`
	Severity     alert.Severity `json:"severity"`
	State        State          `json:"state"`
	Headline     string         `json:"headline"`
	// At is when this was decided, Fired when the alert began to fire, and Since since when what it is about is wrong, as far
	// as that is known.
	At    time.Time `json:"at"`
	Fired time.Time `json:"fired"`
	Since time.Time `json:"since,omitzero"`
	// Count is of what the headline names.
	Count int64 `json:"count,omitempty"`
	// Sample is an event that it is about, if there is one.
	Sample *alert.Sample `json:"sample,omitempty"`
	// Action is what to do next.
	Action alert.Action `json:"action,omitzero"`
	// Gateway is the host of the gateway that decided it.
	Gateway string `json:"gateway"`
}

// Fingerprint returns what an alert is called outside of its installation. Without a name that is what it is called inside.
func Fingerprint(installation, inside string) string {
	if installation == "" {
		return inside
	}
	return installation + ":" + inside
}

// MaxSubjects is how many notifications one message has at most.
const MaxSubjects = 50

// Message is what an address is told at once: everything that there is to tell of one rule. There is at least one notification.
type Message struct {
	// Key is the same whenever the same notifications are sent again.
	Key           string         `json:"key"`
	Rule          string         `json:"rule"`
	Notifications []Notification `json:"notifications"` // by subject
}

// Notifier sends messages to one address. It must be safe for concurrent use.
type Notifier interface {
	// Notify sends a message. Without an error the address has it. After an error nothing is known, and it is sent again, later,
	// under the same keys; errors are kept and shown to people, and so hold no secrets. It must return when ctx ends.
	Notify(ctx context.Context, m Message) error
}

// Address is somebody who is told.
type Address struct {
	// Name is what people know it by, and what is on record. It is the same over reloads.
	Name string
	// Severities are what it is told of; [alert.Info] is never told.
	Severities []alert.Severity
	Notifier   Notifier
}
