package provider_test

import (
	"fmt"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

func ExampleLookup() {
	stripe, err := provider.Lookup("stripe")
	fmt.Println(stripe.Title, spec.FormatDuration(stripe.Limits.Retry), err)
	// Output: Stripe 3d <nil>
}

func ExampleNames() {
	fmt.Println(provider.Names()[:3])
	// Output: [adyen adyen-platform auth0]
}
