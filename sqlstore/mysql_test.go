package sqlstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/storetest"
)

// Users connect, and set isolation, in other ways than the package advises. The guarantees hold all the same.
func TestMySQLSettings(t *testing.T) {
	storetest.Briefly(t)
	for name, parameters := range map[string]string{
		"read committed":   "?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27",
		"serializable":     "?interpolateParams=true&tx_isolation=%27SERIALIZABLE%27",
		"strict snapshots": "?interpolateParams=true&innodb_snapshot_isolation=ON",
		"found rows":       "?interpolateParams=true&clientFoundRows=true",
		"prepared":         "",
		"latin1":           "?charset=latin1",
	} {
		t.Run(name, func(t *testing.T) { conformance(t, overMySQL(parameters)) })
	}
}
