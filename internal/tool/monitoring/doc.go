// Package monitoring tests what is in the folder ops: that the rules fire when they should and not before, that board, rules
// and pages name metrics that there are, and that every query of the board has an answer.
//
// It has tests only. What takes long runs with -long: storms and silences that are told after days of history, and a real
// Prometheus that scrapes a gateway under load.
package monitoring
