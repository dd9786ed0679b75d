package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// listed is what the list says about a provider.
type listed struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Key lists the rules for the key, tried in order, each a list of parts; none: nothing recognises a
	// copy. Signed says for each rule whether the signature covers it.
	Key       [][]spec.Value `json:"key"`
	Signed    []bool         `json:"key_signed"`
	OnRepeat  spec.Repeat    `json:"on_repeat"`
	Answer    int            `json:"answer"`
	Handshake []string       `json:"handshake_methods"`
}

// maxKeyColumn is how much of a key the table shows, in bytes. The JSON has all of it.
const maxKeyColumn = 48

func newProvidersCommand(w *env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "providers [flags]",
		Short: "List the providers in the catalogue, or show one",
		Long: `Providers lists who hookonce knows: where the key of an event is, whether the signature covers it,
which status the provider wants, and the methods of its handshakes.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return helpOrUnknown(c, args)
			}
			return listProviders(w, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write the list as JSON")
	c.AddCommand(newProvidersShowCommand(w))
	return c
}

func listProviders(w *env, asJSON bool) error {
	var all []listed
	for _, name := range provider.Names() {
		known, err := provider.Lookup(name)
		if err != nil {
			return err
		}
		all = append(all, newListed(known.WithDefaults()))
	}
	if asJSON {
		enc := json.NewEncoder(w.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(all)
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tTITLE\tKEY\tSIGNED\tANSWER\tHANDSHAKE")
	for i := range all {
		fmt.Fprintln(t, strings.Join(all[i].columns(), "\t"))
	}
	return t.Flush()
}

// newListed takes a specification with its defaults.
func newListed(known spec.Spec) listed {
	l := listed{
		Name: known.Name, Title: known.Title, Key: known.KeyRules(), Signed: known.KeySigned(),
		OnRepeat: known.Dedup.OnRepeat, Answer: known.Answer.Status, Handshake: []string{},
	}
	for _, h := range known.Handshakes {
		if !slices.Contains(l.Handshake, h.Method) {
			l.Handshake = append(l.Handshake, h.Method)
		}
	}
	return l
}

// columns returns the provider's line in the table. Of several rules for the key the first stands there.
func (l *listed) columns() []string {
	key, signed, handshake := "-", "-", "-"
	if len(l.Key) > 0 {
		key, signed = keyText(l.Key[:1]), yesNo(l.Signed[0])
		if len(key) > maxKeyColumn {
			key = key[:maxKeyColumn] + "..."
		}
		if more := len(l.Key) - 1; more > 0 {
			key += fmt.Sprintf(" (and %d more)", more)
		}
	}
	if len(l.Handshake) > 0 {
		handshake = strings.Join(l.Handshake, ", ")
	}
	return []string{l.Name, l.Title, key, signed, strconv.Itoa(l.Answer), handshake}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
