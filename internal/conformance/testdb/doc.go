// Package testdb opens the project's stores on real engines for the conformance suites: for the tests of the stores,
// and for `hookonce doctor --conformance`.
package testdb
