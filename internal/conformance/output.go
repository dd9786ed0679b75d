package conformance

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// marker stands before the lines in which package testing speaks for itself, when it writes for programs
// (-test.v=test2json): https://pkg.go.dev/cmd/test2json
const marker = "\x16"

// bound is how much of what a case says is kept.
const bound = 4 << 10

var endOf = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \((\d+\.\d+)s\)`)

var results = map[string]string{"PASS": Passed, "FAIL": Failed, "SKIP": Skipped}

// output follows what tests say, line by line.
type output struct {
	running []string // in the order in which they began
	said    map[string]*strings.Builder
	parents map[string]bool // tests that are no cases: others are beneath them
	current string          // whose lines come
}

// line takes the next line, and returns the case that it ended.
func (o *output) line(line string) (c Case, ended bool) {
	at := strings.LastIndex(line, marker) // whatever has no line break stands before it
	if at < 0 {
		o.say(line)
		return Case{}, false
	}
	if at > 0 {
		o.say(line[:at])
	}
	line = strings.TrimSuffix(line[at+len(marker):], "\n")
	if verb, name, found := strings.Cut(strings.TrimPrefix(line, "=== "), " "); found && strings.HasPrefix(line, "=== ") {
		o.current = strings.TrimSpace(name)
		if verb == "RUN" {
			o.begin(o.current)
		}
		return Case{}, false
	}
	m := endOf.FindStringSubmatch(line)
	if m == nil {
		return Case{}, false
	}
	return o.end(m[2], m[1], m[3])
}

func (o *output) begin(name string) {
	if o.said == nil {
		o.said, o.parents = map[string]*strings.Builder{}, map[string]bool{}
	}
	o.said[name] = new(strings.Builder)
	o.running = append(o.running, name)
	for parent := name; strings.Contains(parent, "/"); {
		parent = parent[:strings.LastIndex(parent, "/")]
		o.parents[parent] = true
	}
}

func (o *output) say(text string) {
	if b := o.said[o.current]; b != nil && b.Len() < bound {
		b.WriteString(text[:min(len(text), bound-b.Len())])
	}
}

// end returns the case. A parent is one only if it failed and said why: what its cases say is theirs.
func (o *output) end(name, verb, seconds string) (c Case, ended bool) {
	b := o.said[name]
	if b == nil {
		return Case{}, false
	}
	o.current = name
	delete(o.said, name)
	o.running = slices.DeleteFunc(o.running, func(s string) bool { return s == name })
	reason := strings.TrimSpace(b.String())
	if o.parents[name] && (verb != "FAIL" || reason == "") {
		return Case{}, false
	}
	c = Case{Name: readable(name), Result: results[verb]}
	c.Seconds, _ = strconv.ParseFloat(seconds, 64)
	if c.Result != Passed {
		c.Reason = reason
	}
	return c, true
}

// leaves are the cases that have not ended, without those that others are beneath.
func (o *output) leaves() (names []string) {
	for _, name := range o.running {
		if !o.parents[name] {
			names = append(names, readable(name))
		}
	}
	return names
}

// readable undoes what package testing does to names: a space is "_" there.
func readable(name string) string { return strings.ReplaceAll(name, "_", " ") }
