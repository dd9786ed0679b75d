package pgproxy

import (
	"fmt"
	"regexp"
)

// YugabyteLacks returns what a text has and YugabyteDB has not, which internal/ddl has sources for; comments may tell of it.
func YugabyteLacks(sql string) string { return lacking.FindString(comment.ReplaceAllString(sql, "")) }

var comment = regexp.MustCompile(`--[^\n]*`)

var lacking = regexp.MustCompile(`(?i)\bbrin\b|\bWITH \((fillfactor|toast_tuple_target|autovacuum\w*) ?=|\bUNLOGGED\b|\bLOCK TABLE\b|` +
	`\bPARTITION (OF|BY (RANGE|LIST|HASH))\b|\b(ATTACH|DETACH) PARTITION\b|\bCONSTRAINT TRIGGER\b|\bDEFERRABLE\b|\bINHERITS\b|\bUSING (hash|gist|spgist)\b|\bEXCLUDE\b|` +
	`\b(ctid|xmin|xmax|cmin|cmax)\b|\btxid_\w+|\bpg_(current_xact_id|xact_status)\w*`)

// yugabyteVersion is what YugabyteDB 2025.2 says of itself.
const yugabyteVersion = `'PostgreSQL 15.12-YB-2025.2.0.0-b0 on x86_64-pc-linux-gnu'::text`

var versionCall = regexp.MustCompile(`(?i)\bversion\(\)`)

// Yugabyte is a PostgreSQL that says that it is YugabyteDB, and refuses statements with what that has not.
var Yugabyte = Fault{Text: func(sql string) string {
	if lacks := YugabyteLacks(sql); lacks != "" {
		return fmt.Sprintf(`"YugabyteDB has no %s"`, lacks) // which is no SQL
	}
	return versionCall.ReplaceAllString(sql, yugabyteVersion)
}}
