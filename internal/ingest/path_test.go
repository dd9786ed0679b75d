package ingest

import (
	"strings"
	"testing"
)

func TestSourceName(t *testing.T) {
	for path, want := range map[string]string{
		"/in/billing":   "billing",
		"/in/billing/":  "billing",
		"/in/billing//": "",
		"/in/a/b":       "",
		"/in/":          "",
		"/in//":         "",
		"/in":           "",
		"/IN/billing":   "",
		"//in/billing":  "",
		"/":             "",
		"":              "",
		"*":             "",
		"/in/..":        "..",
	} {
		if got := sourceName(path); got != want {
			t.Errorf("sourceName(%q) = %q, want %q", path, got, want)
		}
	}
}

func FuzzSourceName(f *testing.F) {
	for _, path := range []string{"/in/a", "/in/a/", "/in//a", "in/a", "/in/\x00", "/in/a/in/b"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		name := sourceName(path)
		if strings.Contains(name, "/") {
			t.Fatalf("sourceName(%q) = %q", path, name)
		}
		if name != "" && path != PathPrefix+name && path != PathPrefix+name+"/" {
			t.Fatalf("sourceName(%q) = %q, which is another path", path, name)
		}
	})
}
