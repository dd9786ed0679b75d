//go:build !linux

// Command attack attacks a gateway. It runs on Linux only: it reads /proc, and needs all of 127.0.0.0/8 for its addresses.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "attack: the attacks run on Linux only")
	os.Exit(2)
}
