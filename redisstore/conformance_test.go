package redisstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/storetest"
)

func TestConformance(t *testing.T) {
	testskip.Long(t)
	cfg := suite(redistest.Addr(t))
	storetest.Run(t, cfg)
	storetest.RunConcurrent(t, cfg)
	storetest.RunResponses(t, cfg)
}

// In a cluster each claim is on one of three servers.
func TestCluster(t *testing.T) {
	storetest.Briefly(t)
	cfg := suite(redistest.Cluster(t)...)
	storetest.Run(t, cfg)
	storetest.RunConcurrent(t, cfg)
	storetest.RunResponses(t, cfg)
}

func TestHistory(t *testing.T) {
	t.Run("server", func(t *testing.T) { storetest.RunHistory(t, faulty(t, redistest.Addr(t))) })
	t.Run("cluster", func(t *testing.T) { storetest.RunHistory(t, suite(redistest.Cluster(t)...).History()) })
}
