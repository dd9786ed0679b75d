package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"

	"github.com/hookonce/hookonce/internal/ddl"
)

func newVersionCommand(w *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, its commit, and the version of the schema that it needs",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(w.out, versions())
			return err
		},
	}
}

// versions is what the command version prints, and the flag --version.
func versions() string {
	b := built()
	return fmt.Sprintf("hookonce %s\ncommit %s\nschema %d\n%s %s/%s\n",
		b.version, b.commit, ddl.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the module's version as the go command recorded it: a tag, or a pseudo-version
// with the commit.
func version() string { return built().version }

// provenance is which source a program was built from.
type provenance struct {
	version string // a tag, a pseudo-version, or (devel)
	commit  string // its hash and its time as far as they are known, for people
}

func built() provenance {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return provenanceOf(info)
}

// provenanceOf reads what the go command recorded, which is the only place that knows: nothing is set by the linker, so
// that every way of building says the same of one commit.
func provenanceOf(info *debug.BuildInfo) provenance {
	b := provenance{version: cmp.Or(info.Main.Version, "(devel)"), commit: "unknown: the go command was told not to record it, or this was no checkout"}
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	switch revision := recorded["vcs.revision"]; {
	case revision != "":
		b.commit = revision + " of " + recorded["vcs.time"]
		if recorded["vcs.modified"] == "true" {
			b.commit += ", with changes that are not in it"
		}
	case module.IsPseudoVersion(b.version):
		hash, _ := module.PseudoVersionRev(b.version)
		at, _ := module.PseudoVersionTime(b.version)
		b.commit = hash + " of " + at.Format(time.RFC3339)
	case info.Main.Sum != "":
		b.commit = "that of the tag; checksum of the module " + info.Main.Sum
	}
	return b
}
