package hookonce_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/hookonce/hookonce"
)

func ExampleRoute() {
	cells := []hookonce.Cell{{Name: "eu", Weight: 2}, {Name: "us", Weight: 1}}
	for _, account := range []string{"acct_1", "acct_2", "acct_3", "acct_4"} {
		fmt.Println(account, hookonce.Route(cells, account).Name)
	}
	// Output:
	// acct_1 us
	// acct_2 eu
	// acct_3 eu
	// acct_4 eu
}

// Route is what the gateway's cells go by, with the vectors that never change.
func TestRouteHasTheVectors(t *testing.T) {
	data, err := os.ReadFile("internal/rendezvous/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Nodes []hookonce.Cell
		Key   []string
		Owner string
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal(len(vectors), err)
	}
	for _, v := range vectors {
		if got := hookonce.Route(v.Nodes, v.Key...); got.Name != v.Owner {
			t.Errorf("%q belongs to %q, want %q", v.Key, got.Name, v.Owner)
		}
	}
	if got := hookonce.Route(nil, "key"); got != (hookonce.Cell{}) {
		t.Errorf("without cells: %v", got)
	}
}
