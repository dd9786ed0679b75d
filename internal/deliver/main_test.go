package deliver_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing that a deliverer began outlives it, whatever its destinations did.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
