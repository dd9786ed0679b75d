package pgstore

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/internal/pgprimary"
)

// FollowPrimary has the connections of the pool that will be made of cfg lead to the primary among several servers, as in
// postgres://h1,h2,h3/db?target_session_attrs=read-write. Call it once, after everything else in cfg is set; hooks that
// are set are called as well. BeforeConnect, which may set a password that expires, is told the one server that the
// connection is for, and called also for the connections on which the servers are asked who leads.
//
// Without it the driver takes the first server that says that it takes writes, and so may a former primary that was cut
// off and that nobody has stopped. Its commits wait for a standby for ever, or, without a synchronous standby, are lost. With it the
// servers are asked at the same time, and whoever was promoted last is the primary; connections to any other are cut, also
// while a statement or a commit waits there, whose outcome is then unknown ([hookonce.ErrUnknownOutcome]). Servers are asked
// when a connection is made, and while a statement waits for longer than half a second.
//
// With one host in cfg only this much happens, with several as well: a connection that is answered with
// read_only_sql_transaction (25006) is closed, so that the pool makes another one, which may lead to the new primary behind
// a proxy.
func FollowPrimary(cfg *pgxpool.Config) { pgprimary.Follow(cfg) }
