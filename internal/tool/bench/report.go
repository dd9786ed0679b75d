//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is everything that was measured, as -json writes it.
type report struct {
	Machine  machine     `json:"machine"`
	Rounds   int         `json:"rounds"`
	Seconds  float64     `json:"seconds_per_row_and_round"`
	Conns    int         `json:"connections"`
	BodySize int         `json:"body_bytes"`
	Rows     []reportRow `json:"rows"`
	Again    []string    `json:"failed,omitempty"` // what failed, and was tried again
}

// machine is where it was measured.
type machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
	Date     string `json:"date"`
}

// reportRow is one row with its figures over all rounds.
type reportRow struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Rate    spread   `json:"per_second"`
	OfC     float64  `json:"ratio_to_ceiling,omitempty"`
	OfL     float64  `json:"ratio_to_limit,omitempty"`
	P99     spread   `json:"p99_ms"`
	HalfP99 spread   `json:"half_load_p99_ms"`
	Samples []sample `json:"samples"`
}

// spread is a median with the least and the greatest.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(samples []sample, of func(sample) float64) spread {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	if len(values) == 0 {
		return spread{}
	}
	middle := values[len(values)/2]
	if len(values)%2 == 0 {
		middle = (middle + values[len(values)/2-1]) / 2
	}
	return spread{middle, values[0], values[len(values)-1]}
}

func newReport(s options, chosen []row, samples map[string][]sample) *report {
	r := &report{
		Machine: thisMachine(), Rounds: s.rounds, Seconds: s.duration.Seconds(), Conns: s.conns, BodySize: bodySize,
	}
	for _, row := range chosen {
		all := samples[row.id]
		r.Rows = append(r.Rows, reportRow{
			ID: row.id, Title: row.title, Samples: all,
			Rate:    spreadOf(all, func(s sample) float64 { return s.Rate }),
			P99:     spreadOf(all, func(s sample) float64 { return millis(s.P99) }),
			HalfP99: spreadOf(all, func(s sample) float64 { return millis(s.HalfP99) }),
		})
	}
	r.ratios(chosen)
	return r
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// row returns what was measured of a row; all is 0 if nothing was.
func (r *report) row(id string) (found reportRow) {
	for _, row := range r.Rows {
		if row.ID == id {
			return row
		}
	}
	return found
}

// rate returns the median rate of a row, 0 if it was not measured.
func (r *report) rate(id string) float64 { return r.row(id).Rate.Median }

// limit is what no program can exceed that verifies each request and then stores it:
// 1/(1/C + 1/B).
func (r *report) limit(store string) float64 {
	c, b := r.rate("a"), r.rate(map[string]string{"sqlite": "b1", "postgres": "b2"}[store])
	if c == 0 || b == 0 {
		return 0
	}
	return 1 / (1/c + 1/b)
}

func (r *report) ratios(chosen []row) {
	for i, row := range chosen {
		if c := r.rate("a"); c > 0 {
			r.Rows[i].OfC = r.Rows[i].Rate.Median / c
		}
		if l := r.limit(row.store); l > 0 && row.limit {
			r.Rows[i].OfL = r.Rows[i].Rate.Median / l
		}
	}
}

// markdown writes the table of docs/performance.md.
func (r *report) markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s, %d cores, Linux %s, %s, %s; %s.\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Go, r.Machine.Postgres, r.Machine.Date)
	fmt.Fprintf(b, "Medians of %d rounds of %g s, least and greatest in brackets; %d connections, %d-byte bodies.\n\n", r.Rounds, r.Seconds, r.Conns, r.BodySize)
	fmt.Fprintln(b, "| | | per second | of C | of L | p99 | p99 at half load | CPU: server, generator |")
	fmt.Fprintln(b, "|---|---|---|---|---|---|---|---|")
	for _, row := range r.Rows {
		fmt.Fprintf(b, "| %s | %s | %.0f (%.0f–%.0f) | %s | %s | %s | %s | %s |\n", row.ID, row.Title, row.Rate.Median, row.Rate.Min, row.Rate.Max,
			ratio(row.OfC), ratio(row.OfL), latency(row.P99), latency(row.HalfP99), row.cost())
	}
	for _, store := range []string{"sqlite", "postgres"} {
		if l := r.limit(store); l > 0 {
			fmt.Fprintf(b, "\nL on %s, 1/(1/C + 1/B): %.0f per second.", store, l)
		}
	}
	fmt.Fprintln(b)
	r.comparisons(b)
	r.processes(b)
	for _, line := range r.Again {
		fmt.Fprintf(b, "- failed, and was tried again once: %s\n", strings.Join(strings.Fields(line), " "))
	}
	return b.Flush()
}

func ratio(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x)
}

func latency(s spread) string {
	if s.Max == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f ms (%.1f–%.1f)", s.Median, s.Min, s.Max)
}

// cost is the processor time for each request, of the server under test and of the generator.
func (row reportRow) cost() string {
	server := spreadOf(row.Samples, func(s sample) float64 { return float64(s.Server) / 1e3 })
	generator := spreadOf(row.Samples, func(s sample) float64 { return float64(s.Generator) / 1e3 })
	if generator.Max == 0 {
		return fmt.Sprintf("%.0f µs", server.Median)
	}
	return fmt.Sprintf("%.0f µs, %.1f µs", server.Median, generator.Median)
}

// comparisons writes the ratios between rows that people ask for.
func (r *report) comparisons(w io.Writer) {
	for _, c := range []struct{ ours, theirs, what string }{
		{"e", "d", "hookonce to the hand-written handler, SQLite"},
		{"f", "c", "hookonce to the hand-written handler, Postgres"},
		{"i2", "i1", "library to the hand-written transaction"},
		{"i6", "i1", "library, as a batch, to the hand-written transaction"},
		{"i6", "i5", "library, as a batch, to the fastest way by hand"},
		{"i4", "i3", "`Idempotent` to the hand-written endpoint"},
		{"j2", "j1", "95 destinations beside 5 that hang to the same beside 5 that do not"},
		{"l2", "l1", "accepted beside -size keys to empty tables, Postgres"},
		{"m2", "m1", "accepted beside -size keys to an empty file, SQLite"},
	} {
		if a, b := r.rate(c.ours), r.rate(c.theirs); a > 0 && b > 0 {
			fmt.Fprintf(w, "\n- %s: %.2f", c.what, a/b)
		}
	}
	if a, b := r.row("k2").P99.Median, r.row("k1").P99.Median; a > 0 && b > 0 {
		fmt.Fprintf(w, "\n- p99 during purges and drops of partitions to without: %.2f", a/b)
	}
	ceiling := r.row("a").HalfP99.Median
	for _, id := range []string{"e", "f"} {
		if p99 := r.row(id).HalfP99.Median; p99 > 0 && ceiling > 0 {
			fmt.Fprintf(w, "\n- p99 at half load, row %s to the ceiling: %.2f", id, p99/ceiling)
		}
	}
	fmt.Fprintln(w)
}

// processes writes memory and start-up of hookonce's own processes.
func (r *report) processes(w io.Writer) {
	const mib = 1 << 20
	for _, row := range r.Rows {
		idle := spreadOf(row.Samples, func(s sample) float64 { return float64(s.Idle) / mib })
		loaded := spreadOf(row.Samples, func(s sample) float64 { return float64(s.Loaded) / mib })
		if idle.Max == 0 {
			continue
		}
		started := "not measured in one round"
		if len(row.Samples) > 1 { // the first round makes the database
			start := spreadOf(row.Samples[1:], func(s sample) float64 { return millis(s.Start) })
			started = fmt.Sprintf("%.0f ms (%.0f–%.0f)", start.Median, start.Min, start.Max)
		}
		fmt.Fprintf(w, "- row %s: resident memory idle %.0f MiB, at most %.0f MiB under load; start-up on an existing database %s\n", row.ID, idle.Median, loaded.Max, started)
	}
}

func thisMachine() machine {
	return machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: firstLine("uname", "-r"), Go: runtime.Version(),
		Postgres: postgresVersion(), Date: time.Now().Format(time.DateOnly),
	}
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func postgresVersion() string {
	if v := firstLine("pg_config", "--version"); v != "" {
		return v
	}
	return firstLine("psql", "--version")
}

func firstLine(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
