package provider

import (
	"slices"
	"testing"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestWhoSignsTheURL: those behind a proxy have to be told it, and nobody else.
func TestWhoSignsTheURL(t *testing.T) {
	var signing []string
	every(t, func(_ *testing.T, s spec.Spec, _ *spec.Provider) {
		if s.SignsURL() {
			signing = append(signing, s.Name)
		}
	})
	if want := []string{"hubspot", "hubspot-legacy", "square", "trello", "twilio", "twilio-events"}; !slices.Equal(signing, want) {
		t.Errorf("%v, want %v", signing, want)
	}
}
