package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/ddl"
)

func newVersionCommand(w *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program and of the schema that it needs",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(w.out, versions())
			return err
		},
	}
}

// versions is what the command version prints, and the flag --version.
func versions() string {
	return fmt.Sprintf("hookonce %s\nschema %d\n%s %s/%s\n",
		version(), ddl.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the module's version as the go command recorded it: a tag, or a pseudo-version
// with the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
