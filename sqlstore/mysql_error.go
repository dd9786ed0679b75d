package sqlstore

import "context"

// mysqlNumber returns the number of the error that the server answered with, or 0 if it did not. The driver
// of MySQL has no method for it, only a field.
func mysqlNumber(err error) int { return numberIn(err, "Number") }

func contendedMySQL(err error) contention {
	return map[int]contention{
		1205: held,  // ER_LOCK_WAIT_TIMEOUT
		1213: again, // ER_LOCK_DEADLOCK
		1020: again, // ER_CHECKREAD: MariaDB with innodb_snapshot_isolation
	}[mysqlNumber(err)]
}

// existsMySQL: ER_DUP_ENTRY.
func existsMySQL(err error) bool { return mysqlNumber(err) == 1062 }

// refusedMySQL: a server refuses a commit only where others have a say, in a cluster. Anything else at that
// moment, a shutdown for one, says nothing about what became of the transaction.
func refusedMySQL(err error) bool {
	return map[int]bool{
		1213: true, // ER_LOCK_DEADLOCK: a conflict in a Galera cluster
		3101: true, // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: a conflict in a replication group
	}[mysqlNumber(err)]
}

// unmigratedMySQL: the store's statements name nothing but its own tables.
func unmigratedMySQL(_ context.Context, _ querier, _ string, err error) bool {
	return map[int]bool{
		1146: true, // ER_NO_SUCH_TABLE
		1054: true, // ER_BAD_FIELD_ERROR
	}[mysqlNumber(err)]
}
