//go:build !linux

// Command bench measures hookonce. It runs on Linux only: it reads /proc and drives its load with epoll.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: the benchmarks run on Linux only")
	os.Exit(1)
}
