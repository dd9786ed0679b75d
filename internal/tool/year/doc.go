// Package year plays months of a receiver's life in seconds, and looks for a law that was broken.
//
// A [Plan] says everything that happens: which events senders make, who sends what again, which call of a store fails
// and how, which process dies at it, what the network does, what operators do, whose clock jumps, a machine's or a
// database's. It is drawn from a seed, and [Play] plays it in a bubble of testing/synctest with the real gateways, the real
// library and real senders' signatures, over a network and a disk that belong to the plan. The gateways are on one store, or
// are cells, each with its own. What happens is in a ledger that belongs to nobody, and the laws of docs/guarantees.md are
// questions to it.
//
// The bubble fixes the time, and not the order of goroutines at one moment: a plan that breaks a law once may pass the
// next time. So a failing plan is shrunk by playing every smaller one several times, and what is kept under testdata is
// the plan itself, which stays what it is when the drawing of plans changes.
package year
