package settings

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Place is where a setting was written: a position in a file, an environment variable or a flag. The
// zero Place is nowhere.
type Place struct {
	// Name is that of the file, the variable or the flag.
	Name string
	// Line and Column count from 1. Zero: this is no file.
	Line, Column int
}

// String returns file:line:column, or the name of the variable or flag.
func (p Place) String() string {
	if p.Line == 0 {
		return p.Name
	}
	return fmt.Sprintf("%s:%d:%d", p.Name, p.Line, p.Column)
}

// Either returns flag on the command line and file everywhere else: what to do differs there.
func (p Place) Either(file, flag string) string {
	if strings.HasPrefix(p.String(), "--") {
		return flag
	}
	return file
}

// compare orders positions of a file before all other places.
func (p Place) compare(q Place) int {
	switch {
	case p.Line == 0 && q.Line == 0:
		return 0
	case p.Line == 0:
		return 1
	case q.Line == 0:
		return -1
	case p.Line != q.Line:
		return p.Line - q.Line
	}
	return p.Column - q.Column
}

// Fault is one fault of a configuration: where it was written, what is wrong, and what to write
// instead. Its text never contains a secret.
type Fault struct {
	At   Place
	Text string
}

// Error returns the place and the text, such as
//
//	hookonce.yaml:7:5: unknown key "secret"; did you mean "secrets"?
func (f Fault) Error() string {
	if at := f.At.String(); at != "" {
		return at + ": " + f.Text
	}
	return f.Text
}

// Attrs returns the place and the text for a log: file, line and column, or the setting's variable or flag.
func (f Fault) Attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("error", f.Text)}
	switch {
	case f.At.Line > 0:
		attrs = append(attrs, slog.String("file", f.At.Name), slog.Int("line", f.At.Line), slog.Int("column", f.At.Column))
	case f.At.Name != "":
		attrs = append(attrs, slog.String("setting", f.At.Name))
	}
	return attrs
}

// Faults are all the faults of a configuration: those of the file in the order of its lines, then
// those of the environment and the flags.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Report gathers what is wrong with a configuration, and what is worth a remark. The zero Report is
// empty. It is not safe for concurrent use.
type Report struct {
	faults   Faults
	warnings []string
}

// Fault adds a fault: what is wrong, and what to write instead.
func (r *Report) Fault(at Place, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if flag, ok := strings.CutPrefix(at.Name, "--"); ok {
		text = strings.TrimPrefix(text, flag+": ") // the place says it already
	}
	r.faults = append(r.faults, Fault{at, text})
}

// Warn adds a remark that does not keep the configuration from being used.
func (r *Report) Warn(at Place, format string, args ...any) {
	r.warnings = append(r.warnings, Fault{at, fmt.Sprintf(format, args...)}.Error())
}

// Clean reports whether there is no fault so far.
func (r *Report) Clean() bool { return len(r.faults) == 0 }

// Warnings returns the remarks, one sentence each, in the order in which they were made.
func (r *Report) Warnings() []string { return r.warnings }

// Err returns every fault as [Faults], those of the file by position and the others behind them as
// they came, and nil if there is none.
func (r *Report) Err() error {
	if r.Clean() {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return a.At.compare(b.At) })
	return r.faults
}
