package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Problem is one fault of a configuration: where it was written, what is wrong, and what to write
// instead. Its text never contains a secret.
type Problem struct {
	at   place
	text string
}

// Error returns the place and the text, such as
//
//	hookonce.yaml:7:5: unknown key "secret"; did you mean "secrets"?
func (p Problem) Error() string {
	if at := p.at.String(); at != "" {
		return at + ": " + p.text
	}
	return p.text
}

// Attrs returns the place and the text for a log: file, line and column, or the setting's variable or flag.
func (p Problem) Attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("error", p.text)}
	switch {
	case p.at.line > 0:
		attrs = append(attrs, slog.String("file", p.at.name), slog.Int("line", p.at.line), slog.Int("column", p.at.col))
	case p.at.name != "":
		attrs = append(attrs, slog.String("setting", p.at.name))
	}
	return attrs
}

// Problems are all the faults that [Load] found: those of the file in the order of its lines, then
// those of the environment and the flags.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted orders problems of the file by position and leaves the others behind them as they came.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int { return a.at.compare(b.at) })
	return p
}

// place is where a setting was written: a position in a file, an environment variable or a flag.
type place struct {
	name      string
	line, col int // from 1; 0: not a file
}

// String returns file:line:col, or the name of the variable or flag.
func (p place) String() string {
	if p.line == 0 {
		return p.name
	}
	return fmt.Sprintf("%s:%d:%d", p.name, p.line, p.col)
}

// either returns what to do: in a file or a variable, or on the command line.
func (p place) either(file, flag string) string {
	if strings.HasPrefix(p.String(), "--") {
		return flag
	}
	return file
}

func (p place) compare(q place) int {
	switch {
	case p.line == 0 && q.line == 0:
		return 0
	case p.line == 0:
		return 1
	case q.line == 0:
		return -1
	case p.line != q.line:
		return p.line - q.line
	}
	return p.col - q.col
}
