package memstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/storetest"
)

func TestHistory(t *testing.T) {
	storetest.RunHistory(t, storetest.TxConfig[*memstore.Tx]{Open: open}.History())
}
