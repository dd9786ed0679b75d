package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// program is what goes into the image, and what the go command recorded in it.
type program struct {
	text                    []byte
	version, revision, arch string
	committed               time.Time // the beginning of 1970 if it is not known
}

// readProgram reads the program, and refuses one that does not run where there is nothing else.
func readProgram(path string) (*program, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what the program was built from: %w", err)
	}
	p, err := describe(info)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	p.text, err = os.ReadFile(path)
	return p, err
}

// describe says what a program is. Its text is not there.
func describe(info *debug.BuildInfo) (*program, error) {
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	switch {
	case recorded["GOOS"] != "linux":
		return nil, fmt.Errorf("is for %s, and a container needs one for linux: build it with GOOS=linux", recorded["GOOS"])
	case recorded["CGO_ENABLED"] != "0":
		return nil, errors.New("may need libraries, and there are none in the image: build it with CGO_ENABLED=0")
	}
	p := &program{version: info.Main.Version, revision: recorded["vcs.revision"], arch: recorded["GOARCH"], committed: time.Unix(0, 0)}
	if at, err := time.Parse(time.RFC3339, recorded["vcs.time"]); err == nil {
		p.committed = at
	}
	return p, nil
}

// repository is the image's name without its tag. That it is local keeps a slip in the tag from fetching what a stranger
// published under a short name.
const repository = "localhost/hookonce"

// tag says which one it is. A tag has no plus and no parentheses, and a version may.
func (p *program) tag() string {
	return strings.NewReplacer("+", "-", "(", "", ")", "").Replace(p.version)
}

func (p *program) reference() string { return repository + ":" + p.tag() }
