package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/settings"
)

// FuzzLoad: whatever the file, Load does not panic, a fault names a place in it, and what is accepted
// shows as a file that is accepted again and shows the same.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := Input{Path: "f", Data: data, Environ: environ, ReadFile: readFile}
		cfg, err := Load(in)
		if err != nil {
			for _, line := range err.(settings.Faults) {
				if line.Text == "" {
					t.Errorf("a problem without a text at %s", line.At)
				}
			}
			return
		}
		shown := cfg.Show()
		in.Data = []byte(strings.ReplaceAll(shown, settings.Mask, "a-secret-that-is-long-enough")) // a mask is none
		again, err := Load(in)
		if err != nil {
			t.Fatalf("what is shown is not accepted: %v\n%s", err, shown)
		}
		if a, b := bare(shown), bare(again.Show()); a != b {
			t.Errorf("shown:\n%s\nand then:\n%s", a, b)
		}
	})
}

// bare drops the comments that say where a setting came from.
func bare(shown string) string {
	lines := strings.Split(shown, "\n")
	for i, line := range lines {
		if at := strings.LastIndex(line, " # "); at >= 0 {
			lines[i] = strings.TrimRight(line[:at], " ")
		}
	}
	return strings.Join(lines, "\n")
}
