package dynamostore_test

import (
	"github.com/hookonce/hookonce/internal/testskip"
	"testing"
	"time"

	"github.com/hookonce/hookonce/dynamostore"
	"github.com/hookonce/hookonce/dynamostore/internal/dynalite"
	"github.com/hookonce/hookonce/storetest"
)

func TestConformance(t *testing.T) {
	cfg := suite(fake(t))
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunTx(t, cfg)
	storetest.RunTxConcurrent(t, cfg)
	storetest.RunTxResponses(t, cfg)
	storetest.RunGuards(t, cfg)
}

// A transaction of which every answer is lost is sent again until the store's wait is over, so that is short.
func TestFaults(t *testing.T) {
	storetest.RunFaults(t, suite(fake(t), dynamostore.WithWait(200*time.Millisecond)))
}

func TestHistory(t *testing.T) { storetest.RunHistory(t, suite(fake(t)).History()) }

// Lease mode on a stand-in that somebody else has written, and that does not show the item that a condition failed on.
func TestDynalite(t *testing.T) {
	testskip.Long(t)
	if *endpoint != "" {
		t.Skip("it is for the stand-in")
	}
	storetest.Briefly(t)
	cfg := suite(backend{url: dynalite.URL(t)})
	storetest.Run(t, cfg.Lease())
	storetest.RunConcurrent(t, cfg.Lease())
	storetest.RunResponses(t, cfg.Lease())
	storetest.RunHistory(t, cfg.History())
}
