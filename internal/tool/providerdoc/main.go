// Command providerdoc writes docs/providers.md from the catalogue: make docs.
package main

import (
	"fmt"
	"os"
)

const file = "docs/providers.md"

func main() {
	text, err := page()
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
