// Package traffic makes webhook traffic: raw HTTP/1.1 requests over kept-alive connections, at full
// speed or at a steady rate, and volleys of the same request that arrive at one instant. It is behind
// the commands demo and hammer and the benchmarks.
//
// It speaks HTTP itself instead of using net/http, for two reasons. A load generator that shares the
// machine with what it measures must cost little, and a volley must be able to hold back the last
// byte of every request until all of them are otherwise sent.
package traffic
