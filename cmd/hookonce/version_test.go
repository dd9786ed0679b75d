package main

import (
	"runtime/debug"
	"testing"
)

func TestBuildSaysItsSource(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef01234567"
	checkout := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: hash},
			{Key: "vcs.time", Value: "2026-11-20T12:00:00Z"}, {Key: "vcs.modified", Value: modified},
		}
	}
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want provenance
	}{
		{"go build in a checkout of a tag", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: checkout("false")},
			provenance{version: "v1.2.3", commit: hash + " of 2026-11-20T12:00:00Z"}},
		{"go build in a checkout that was edited", debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261120120000-0123456789ab+dirty"}, Settings: checkout("true")},
			provenance{version: "v1.2.4-0.20261120120000-0123456789ab+dirty", commit: hash + " of 2026-11-20T12:00:00Z, with changes that are not in it"}},
		{"go install of a commit", debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20261120120000-0123456789ab", Sum: "h1:fake="}},
			provenance{version: "v0.0.0-20261120120000-0123456789ab", commit: "0123456789ab of 2026-11-20T12:00:00Z"}},
		{"go install of a tag", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3", Sum: "h1:fake="}},
			provenance{version: "v1.2.3", commit: "that of the tag; checksum of the module h1:fake="}},
		{"-buildvcs=false", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			provenance{version: "(devel)", commit: "unknown: the go command was told not to record it, or this was no checkout"}},
		{"no module", debug.BuildInfo{},
			provenance{version: "(devel)", commit: "unknown: the go command was told not to record it, or this was no checkout"}},
	} {
		if got := provenanceOf(&c.info); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}
