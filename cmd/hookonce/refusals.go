package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
)

func newRefusalsCommand(w *env) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "refusals SOURCE [flags]",
		Short: "Show which requests to a source were refused, and why",
		Long: `Refusals asks a running gateway, on its admin listener, for the last requests to a source (200 at most) that it
refused, newest first, and says of each what was wrong. The gateway keeps them in its memory: never a body, a secret or
the value of a header. Other gateways on the same store have their own: name each with --admin. The source - stands for
all paths under which there is none.

For a request that was not verified it prints the command that finds out more. What stands there in capitals is to be
filled in: the file with the body, whose length and SHA-256 are shown to tell whether it is the right one, and the
values of headers, both of which most senders show on their own pages.`,
		Args: oneArg("SOURCE"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var list api.RefusalList
			if err := client.get(c.Context(), "/sources/"+segment(args[0])+"/refusals", nil, &list); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, list)
			}
			printRefusals(w, &list)
			return nil
		},
	}
	admin.declare(c)
	return c
}

func printRefusals(w *env, list *api.RefusalList) {
	if len(list.Refusals) == 0 {
		fmt.Fprintln(w.out, "No request was refused since this gateway began.")
	}
	for i := range list.Refusals {
		r := &list.Refusals[i]
		fmt.Fprintf(w.out, "%s  %d %s  %s %s from %s\n", clock(r.At), r.Status, clean(r.Reason), clean(r.Method), clean(r.Path), clean(r.Address))
		line(w.out, "why", clean(r.Words))
		line(w.out, "missing", clean(r.Missing))
		line(w.out, "headers", clean(strings.Join(r.Headers, ", ")))
		if r.Body != nil {
			line(w.out, "body", fmt.Sprintf("%d bytes, SHA-256 %s", r.Body.Bytes, clean(r.Body.SHA256)))
		}
		if r.Key != "" {
			line(w.out, "key", clean(r.Key)+" (unverified)")
		}
		line(w.out, "look", clean(r.Verify))
		fmt.Fprintln(w.out)
	}
	if n := int64(len(list.Refusals)); list.Total > n {
		fmt.Fprintf(w.err, "There were %d since this gateway began, of which it remembers %d.\n", list.Total, n)
	}
}
