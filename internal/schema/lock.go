package schema

import "fmt"

// KeyLock returns an SQL expression for the number of the PostgreSQL advisory lock that belongs to a
// claim's key. Whoever keeps an inserted or changed claim in a transaction for longer than one
// statement takes this lock first, in the same transaction and in exclusive mode, so that others can
// tell without waiting. Table is its name as statements have it; source and key are expressions of
// type text.
//
// Keys that share a number by chance wait for each other and are otherwise unaffected: who owns a key
// is decided by the unique index alone.
func KeyLock(table, source, key string) string {
	return fmt.Sprintf("hashtextextended(%s, hashtextextended(%s, hashtextextended('%s', 0)))", key, source, table)
}
