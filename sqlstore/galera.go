package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// In a Galera cluster a transaction meets those of other nodes when it commits: of two that wrote the same row the first in
// the order of the group is committed, and the other is refused with the error of a deadlock (1213), at its COMMIT or at any
// statement before that. So all that decides about a claim by writing its row is decided once for all nodes.
//
// What is decided by looking, and writes nothing, is only as new as the node: another may have committed what has not
// arrived yet. A move would be called impossible whose earlier one was committed elsewhere a moment ago, an outcome would not find
// its claim. With wsrep_sync_wait a node first waits, at the beginning of a transaction or of a statement outside of one,
// until it has all that was committed before: 1 for what reads or begins, 2 for UPDATE and DELETE, 4 for INSERT and REPLACE.
// https://mariadb.com/docs/galera-cluster/reference/galera-cluster-system-variables#wsrep_sync_wait
const syncWait = 1 | 2 | 4

// errNotPrimary says that a node must not be asked.
var errNotPrimary = errors.New("this node of the Galera cluster is not in its primary component, or not ready yet: connect to another one " +
	"(wsrep_cluster_status and wsrep_ready tell)")

// notPrimary reports whether a node refused a statement because the cluster may go on without it. It did nothing.
func notPrimary(err error) bool { return mysqlNumber(err) == 1047 } // ER_UNKNOWN_COM_ERROR: WSREP has not yet prepared node for application use

// soundGalera refuses nodes that must not be asked, and connections whose looks may be behind. Elsewhere it finds nothing.
func soundGalera(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	on, err := shown(ctx, conn, `SHOW SESSION VARIABLES LIKE 'wsrep_on'`)
	if err != nil || on != "ON" {
		return err
	}
	ready, err := shown(ctx, conn, `SHOW STATUS LIKE 'wsrep_ready'`)
	if err != nil {
		return err
	}
	if ready != "ON" {
		return errNotPrimary
	}
	waits, err := shown(ctx, conn, `SHOW SESSION VARIABLES LIKE 'wsrep_sync_wait'`)
	if err != nil {
		return err
	}
	if n, _ := strconv.Atoi(waits); n&syncWait != syncWait {
		return fmt.Errorf("connections to this Galera cluster may read what other nodes have changed already (wsrep_sync_wait is %s): "+
			"an outcome would not find its claim, and a move be called impossible; add wsrep_sync_wait=%d to the connection string", waits, syncWait)
	}
	return nil
}

// shown returns the value of the first variable that a statement shows; empty if there is none.
func shown(ctx context.Context, conn *sql.Conn, statement string) (value string, err error) {
	var name string
	err = conn.QueryRowContext(ctx, statement).Scan(&name, &value)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, err
}
