package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/providertext"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

func newProvidersShowCommand(w *env) *cobra.Command {
	var asYAML bool
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Say what is known of a provider: its key, retries, deadline, list of events, traps, sources",
		Long: `Show says in words what the catalogue knows of a provider: how it signs, what the key of an event is and
whether it stays the same when the event is sent again, for how long that happens, how soon the provider
wants its answer, how to find and fetch what never arrived, what goes wrong, and where each fact is from.

--yaml prints the specification instead, to copy and change.`,
		Args: oneArg("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			known, err := provider.Lookup(args[0])
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if asYAML {
				return printSpecification(w, known)
			}
			describeProvider(w.out, providertext.Of(known))
			return nil
		},
	}
	c.Flags().BoolVar(&asYAML, "yaml", false, "print the specification as YAML, with its sources, to copy and change")
	return c
}

func printSpecification(w *env, known spec.Spec) error {
	text, err := specyaml.Marshal(known)
	if err != nil {
		return err
	}
	about := "# To change it, save it under another name and use it with hookonce verify --spec FILE, or below\n# spec: of a source with provider: custom.\n"
	if slices.ContainsFunc(known.Verify, func(v spec.Verify) bool { return v.Scheme != nil }) {
		about = "# Its signature is verified by code of the catalogue (scheme), which a specification of your own can\n# not name.\n"
	}
	_, err = fmt.Fprintf(w.out, "%s%s", about, text)
	return err
}

// describeProvider writes what is known of a provider for people. What nobody states is said to be so.
func describeProvider(out io.Writer, s providertext.Sender) {
	fmt.Fprintf(out, "%s (%s)\n\n", s.Title, s.Name)
	say := func(label, text string) {
		if text != "" {
			paragraph(out, fmt.Sprintf("%-20s", label), strings.Repeat(" ", 20), providertext.Plain(text))
		}
	}
	say("Secret", s.Secret)
	say("Proof", s.Proof())
	say("Methods", strings.Join(s.Methods, ", "))
	say("Handshake", strings.Trim(s.Greetings(), "-"))
	say("Batch", s.Parts())
	say("Key", s.Key())
	if len(s.Event.Key) > 0 {
		say("  signed", s.Proven())
		say("  in a retry", s.Retries())
		say("  resent by hand", s.Resends())
	}
	say("A copy", copies[s.Repeat()])
	say("Newer state", s.Later())
	say("Sent again for", s.Window())
	say("Answer", fmt.Sprintf("%d; deadline %s; %d where the proof is wrong", s.Answer.Status, cmp.Or(s.Deadline(), "not stated"), s.Answer.Reject))
	if l := s.Listing(); l != nil {
		say("What never arrived", "hookonce reconcile asks "+l.Request()+" at "+l.At())
		say("  goes back", l.Back())
		say("  token", l.Token())
		say("  it needs", l.Rights)
		say("  settings", l.Settings())
		say("  has the event", l.Event())
		say("  can be stored", l.Stored())
		say("  sent again", l.Again())
		for _, note := range l.Notes {
			say("  note", note)
		}
	} else {
		say("What never arrived", "no list of its events is described, so hookonce reconcile cannot ask")
	}
	points(out, "Traps", s.Traps)
	var facts []string
	for _, from := range s.Sources {
		where := ""
		if from.Where != "" {
			where = " (" + from.Where + ")"
		}
		facts = append(facts, fmt.Sprintf("%s: %s%s", from.Fact, from.Confidence, where))
	}
	points(out, "Sources", facts)
}

// copies say what becomes of a copy.
var copies = map[string]string{
	string(spec.Drop):       "is not delivered; other content under the same key is reported as a conflict",
	string(spec.KeepLatest): "is not delivered; other content under the same key is a newer edition, and is",
	string(spec.Coalesce):   "is not delivered while an earlier one waits to be handled",
	string(spec.Off):        "is not recognised",
}

// points writes a list below its title, nothing if it is empty.
func points(out io.Writer, title string, all []string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for _, one := range all {
		paragraph(out, "  - ", "    ", providertext.Plain(one))
	}
}

// maxLine is the length of a line of text, in characters.
const maxLine = 100

// paragraph writes words in lines of maxLine at most, where no word is longer: the first begins with first, the others with
// next.
func paragraph(out io.Writer, first, next, text string) {
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > maxLine {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
			line, empty = next, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}
