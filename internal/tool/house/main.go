// Command house writes docs/house.md, the picture of the packages and of what stands on what: make docs.
package main

import (
	"fmt"
	"os"
)

const file = "docs/house.md"

func main() {
	rooms, err := measure(".")
	if err == nil {
		err = os.WriteFile(file, page(rooms), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
