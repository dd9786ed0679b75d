package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/alert"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

const commandsPage = "docs/commands.md"

// TestCommandsPage: every command and every flag stands in docs/commands.md.
func TestCommandsPage(t *testing.T) {
	name := filepath.Join("../..", commandsPage)
	want := commandsMarkdown()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the commands say of themselves (%v): run make docs", commandsPage, err)
	}
}

// TestCommandsAreExplainedAndTried: a page says when to use each command, and a script of testdata uses it.
func TestCommandsAreExplainedAndTried(t *testing.T) {
	var explained, tried strings.Builder
	for name, page := range pages(t) {
		if name != commandsPage {
			explained.WriteString(page)
		}
	}
	err := filepath.WalkDir("internal/endtoend/testdata", func(name string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".txt") {
			return err
		}
		script, err := os.ReadFile(name)
		tried.Write(script)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range acting() {
		command := regexp.MustCompile(c.CommandPath() + `\b`)
		if !command.MatchString(explained.String()) {
			t.Errorf("no page but %s says when to use %q", commandsPage, c.CommandPath())
		}
		if !command.MatchString(tried.String()) {
			t.Errorf("no script of testdata uses %q", c.CommandPath())
		}
	}
}

// TestWrongArgumentsAreWrongUsage: no command takes four arguments that mean nothing, and each that misses or refuses some says so
// with the status that docs/commands.md promises.
func TestWrongArgumentsAreWrongUsage(t *testing.T) {
	for _, c := range descendants(newRootCommand(&env{out: io.Discard, err: io.Discard})) {
		var usage *usageError
		if err := c.ValidateArgs(nil); err != nil && !errors.As(err, &usage) {
			t.Errorf("%s without arguments: %v", c.CommandPath(), err)
		}
		args := append(strings.Fields(c.CommandPath()), "=", "=", "=", "=")
		if status := execute(&env{args: args, in: strings.NewReader(""), out: io.Discard, err: io.Discard}); status != exitUsage {
			t.Errorf("%q: exit status %d", args, status)
		}
	}
}

// No command is told to people with the configuration file that does not take one.
func TestCommandsThatNameAFileTakeIt(t *testing.T) {
	named := 0
	for _, c := range acting() {
		if alert.Typed(c.CommandPath(), "hookonce.yaml") == c.CommandPath() {
			continue
		}
		named++
		if c.Flags().Lookup("config") == nil {
			t.Errorf("people are told to type %s with --config, which it does not have", c.CommandPath())
		}
	}
	if named != 5 {
		t.Errorf("%d commands are told with --config", named)
	}
}

// acting returns the commands that do something: those that only have others beneath them have no flags either.
func acting() (all []*cobra.Command) {
	for _, c := range descendants(newRootCommand(&env{out: io.Discard, err: io.Discard})) {
		if !c.HasSubCommands() || c.HasAvailableLocalFlags() {
			all = append(all, c)
		}
	}
	return all
}

// commandsMarkdown returns what docs/commands.md must say.
func commandsMarkdown() string {
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	settingFlags(settings)
	var b strings.Builder
	b.WriteString(`# Commands

<!-- Generated from the commands by make docs. Change cmd/hookonce/*.go instead. -->

Every command explains itself with ` + "`--help`" + `. The exit status is 0 for success, 1 for failure and 2
for wrong usage, where a command says nothing else. Flags that are settings, such as ` + "`--store`" + `,
stand in [Configuration](configuration.md).

`)
	for _, c := range acting() {
		fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), lower(c.Short))
	}
	for _, c := range acting() {
		use := strings.TrimSuffix(c.UseLine(), " [flags]")
		fmt.Fprintf(&b, "\n## %s\n\n`%s`\n", c.CommandPath(), use)
		long := c.Long
		if long == "" {
			long = c.Short + "."
		}
		long, _, _ = strings.Cut(long, "\n\n"+aboutSettings)
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(long))
		writeFlags(&b, c, settings)
	}
	return b.String()
}

func writeFlags(b *strings.Builder, c *cobra.Command, settings *pflag.FlagSet) {
	head := "\n| flag | meaning | default |\n|---|---|---|\n"
	takesSettings := false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if s := settings.Lookup(f.Name); s != nil && s.Usage == f.Usage {
			takesSettings = true
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + strings.TrimSpace(f.Name+" "+value)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		otherwise := ""
		switch f.DefValue {
		case "", "0", "[]", "false":
		default:
			otherwise = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "%s| `%s` | %s | %s |\n", head, name, strings.ReplaceAll(usage, "|", "\\|"), otherwise)
		head = ""
	})
	if takesSettings {
		b.WriteString("\nSettings are flags of this command.\n")
	}
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
