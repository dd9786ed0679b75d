package spec_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// Reading what a sender lists takes no signing secret. Requests need one, and are rejected.
func ExampleNewListed() {
	known, err := provider.Lookup("stripe")
	if err != nil {
		panic(err)
	}
	p, err := spec.NewListed(known)
	if err != nil {
		panic(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	events, err := p.Listed(header, []byte(`{"id": "evt_1", "type": "invoice.paid", "created": 1770091506}`), time.Unix(1770091510, 0))
	if err != nil {
		panic(err)
	}
	fmt.Println(events[0].Key, events[0].Type)
	// Output: evt_1 invoice.paid
}
