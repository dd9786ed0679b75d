package main

// cellular has faults in how keys are divided among cells.
var cellular = []mutant{
	{"fence-is-open", "cells: a key is accepted under an old map", "internal/journal/pg/cells.go",
		"cell_fence WHERE number = ` + strconv.FormatInt(number, 10) + ` FOR SHARE`",
		"cell_fence WHERE number >= ` + strconv.FormatInt(number, 10) + ` FOR SHARE`",
		[]test{{"./internal/journal/pg", "TestNothingIsAcceptedUnderAnOldMap"}}},
	{"map-does-not-wait", "cells: a map is stored while events are being accepted under the one before", "internal/journal/pg/cells.go",
		"+ strconv.FormatInt(number, 10) + ` FOR SHARE`",
		"+ strconv.FormatInt(number, 10)",
		[]test{{"./internal/journal/pg", "TestAMapWaitsForWhatIsBeingAccepted"}}},
	{"who-knows-no-cells-is-not-fenced", "cells: a gateway without cells accepts what a first map has given away", "internal/journal/pg/cells.go",
		"WHERE NOT EXISTS (SELECT FROM {{.}}cell_fence) AND",
		"WHERE true AND",
		[]test{{"./internal/journal/pg", "TestOtherMapsAreRefused"}}},
	{"fenced-and-open", "cells: a gateway without cells delivers past a store that it knows to be a cell", "internal/journal/engine/engine.go",
		"case e.celled.Load():",
		"case false:",
		[]test{{"./internal/gateway", "TestCellsHaveGatewaysWithoutCellsNotOpen"}}},
	{"one-snapshot-sees-no-first-map", "cells: a gateway without cells accepts what a first map has given away", "internal/journal/pg/cells.go",
		"cell_fence) AND current_setting('transaction_isolation') = 'read committed'",
		"cell_fence)",
		[]test{{"./internal/journal/pg", "TestTheFirstMapFencesGatewaysWithoutCells"}}},
}
