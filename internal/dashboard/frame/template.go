package frame

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed templates problem.html
var templateFiles embed.FS

// partsFile has what several pages of a dashboard show, where there is any.
const partsFile = "_parts.html"

// templates are those of pages, by the names of their files, each with the frame around it.
type templates map[string]func() *template.Template

// find lists the templates of pages. Each is read when its page is first asked for, because what they come to takes a few
// megabytes, and most gateways are looked at by nobody most of the time. One that is wrong panics then, which a test sees.
func find(own fs.FS, extra template.FuncMap, now func() time.Time) templates {
	around := sync.OnceValue(func() *template.Template {
		t := template.Must(template.New("").Funcs(functions(now)).Funcs(extra).ParseFS(templateFiles, "templates/*.html"))
		if parts, err := fs.ReadFile(own, partsFile); err == nil {
			template.Must(t.Parse(string(parts)))
		}
		return t
	})
	page := func(of fs.FS, file string) func() *template.Template {
		return sync.OnceValue(func() *template.Template { return template.Must(template.Must(around().Clone()).ParseFS(of, file)) })
	}
	all := templates{"problem": page(templateFiles, "problem.html")}
	files, err := fs.Glob(own, "*.html")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		if f != partsFile {
			all[strings.TrimSuffix(path.Base(f), ".html")] = page(own, f)
		}
	}
	return all
}

// functions are what templates may call besides methods of what they show.
func functions(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"now":      now,
		"ago":      func(t time.Time) string { return Span(now().Sub(t)) },
		"until":    func(t time.Time) string { return Span(t.Sub(now())) },
		"span":     Span,
		"stamp":    Stamp,
		"clock":    Clock,
		"number":   Number,
		"bytes":    Size,
		"percent":  Percent,
		"segment":  Segment,
		"query":    Query,
		"dict":     dict,
		"status":   func(code int) string { return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code)) },
		"plural":   Plural,
		"fraction": func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) },
	}
}

// Span returns a length of time in its two largest units at most, such as 2 d 4 h.
func Span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return "a moment"
	case d < time.Minute:
		return fmt.Sprintf("%d\u00a0s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d\u00a0min", d/time.Minute)
	case d < 10*time.Hour && d%time.Hour >= time.Minute:
		return fmt.Sprintf("%d\u00a0h\u00a0%d\u00a0min", d/time.Hour, d%time.Hour/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d\u00a0h", d/time.Hour)
	case d < 10*24*time.Hour && d%(24*time.Hour) >= time.Hour:
		return fmt.Sprintf("%d\u00a0d\u00a0%d\u00a0h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
	return fmt.Sprintf("%d\u00a0d", d/(24*time.Hour))
}

// Stamp returns a time to the second, in UTC.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// Clock returns a time of day to the second, in UTC.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// Number returns a number with its thousands apart, by a space that does not break.
func Number(n any) string {
	var text string
	switch n := n.(type) {
	case float64:
		text = strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	default:
		text = fmt.Sprint(n)
	}
	sign, digits := "", text
	if strings.HasPrefix(text, "-") {
		sign, digits = "−", text[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return sign + digits
}

// Size returns a number of bytes.
func Size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 || f >= 100 {
		return fmt.Sprintf("%.0f %s", f, units[u])
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// Percent returns a share of one in a hundred, with as many digits as say something.
func Percent(share float64) string {
	switch p := share * 100; {
	case p == 0:
		return "0 %"
	case p < 0.01:
		return "< 0.01 %"
	case p < 1:
		return fmt.Sprintf("%.2f %%", p)
	case p < 10:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// Plural returns a number and its noun.
func Plural(n any, one, many string) string {
	if fmt.Sprint(n) == "1" {
		return "1\u00a0" + one
	}
	return Number(n) + "\u00a0" + many
}

// Query returns the address of a path with these fields, in pairs of a name and a value. Empty ones are left out.
func Query(path string, fields ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] != "" {
			values.Set(fields[i], fields[i+1])
		}
	}
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	return path
}

// dict returns a map for a template within the template, from pairs of a name and a value.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// Segment returns s as one part of a path. Dots alone would be taken for folders.
func Segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// Quoted returns a text as one word of a shell.
func Quoted(text string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/,@+%=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !safe(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
