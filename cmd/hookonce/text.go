package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"
)

// printJSON writes v for programs.
func printJSON(w *env, v any) error {
	enc := json.NewEncoder(w.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes lines for people, in columns.
type table struct{ *tabwriter.Writer }

func newTable(w *env, indent, head string) table {
	t := table{tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t, indent+strings.ReplaceAll(head, " | ", "\t"))
	return t
}

// row writes one line. What strangers wrote cannot move the cursor or the columns.
func (t table) row(indent string, columns ...any) {
	texts := make([]string, len(columns))
	for i, c := range columns {
		if texts[i] = clean(fmt.Sprint(c)); texts[i] == "" {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(t, indent+strings.Join(texts, "\t"))
}

// clean replaces what is not printable, such as the escape sequences of terminals.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// clock writes a time to the second.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func clockOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return clock(*t)
}

// isTerminal reports whether somebody looks at what is written there.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
