package config

import "fmt"

// What holds secrets prints without them, whatever the verb: also what remembers where a setting was
// written holds the text of it.

// Format writes how many sources there are.
func (c Config) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "configuration of %d sources", len(c.Sources))
}

// Format writes the name and the provider.
func (s Source) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "source %s (%s)", s.Name, s.Provider) }

// Format writes the name.
func (d Destination) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "destination %s", d.Name) }

// Format writes what [Store.String] returns.
func (s Store) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// Format writes what [Secret.String] returns.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }
