// Package journal is the contract of the gateway's durable record of events: what an event, a delivery and
// its outcome are, what a store does with them, and how long they are kept.
//
// Beneath it are the rooms of those who keep the contract: engine makes recording fast and hands out the
// deliveries, pg and sqlite store them, and journaltest has the conformance suite and the reference store.
package journal
