package config

import (
	"fmt"
	"slices"
)

var temporary = []string{"stripe", "github", "shopify", "slack", "square", "svix", "standardwebhooks", "paddle", "hmac"}

func checkProvider(s string) error {
	if !slices.Contains(temporary, s) {
		return fmt.Errorf("unknown provider %q%s", s, suggest(s, temporary))
	}
	return nil
}

func (l *loader) checkProvider(s *Source) {}
