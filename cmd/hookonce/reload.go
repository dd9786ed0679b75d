package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
)

func newReloadCommand(w *env) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have a running gateway read its configuration again",
		Long: `Reload has a running gateway read its configuration file again, and the files that secrets, tokens,
headers and certificates refer to. It prints what changed. With one fault in it, or a setting that needs
a restart, nothing changes, and the exit status is 1. The gateway does the same when it receives SIGHUP.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var result api.ReloadResult
			if err := client.call(c.Context(), http.MethodPost, "/reload", nil, &result); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, result)
			}
			for _, text := range result.Changed {
				fmt.Fprintln(w.out, clean(text))
			}
			if len(result.Changed) == 0 {
				fmt.Fprintln(w.out, "nothing has changed")
			}
			return nil
		},
	}
	admin.declare(c)
	return c
}
