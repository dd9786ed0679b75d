package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/sqlstore"
	"github.com/hookonce/hookonce/storetest"
)

// mysqlPlace is a database on a server of MySQL or MariaDB.
type mysqlPlace struct{ Target }

// config is the driver's, for that database; an empty one: none.
func (p mysqlPlace) config(database string) (*mysql.Config, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	u.Scheme = "tcp"
	dsn := ""
	if u.User != nil {
		password, _ := u.User.Password()
		dsn = u.User.Username() + ":" + password + "@"
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	query := u.RawQuery
	if query != "" {
		query = "?" + query
	}
	cfg, err := mysql.ParseDSN(fmt.Sprintf("%stcp(%s)/%s%s", dsn, net.JoinHostPort(u.Hostname(), port), database, query))
	if err == nil {
		cfg.InterpolateParams = true
	}
	return cfg, err
}

// connected runs work on a pool that leads to no database.
func (p mysqlPlace) connected(work func(db *sql.DB) error) error {
	cfg, err := p.config("")
	if err != nil {
		return err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return work(db)
}

func (p mysqlPlace) about(ctx context.Context) (version string, err error) {
	err = p.connected(func(db *sql.DB) error {
		return db.QueryRowContext(ctx, `SELECT concat(@@version_comment, ' ', version())`).Scan(&version)
	})
	return version, err
}

func (p mysqlPlace) prepare(ctx context.Context) error {
	return p.connected(func(db *sql.DB) error {
		var there int
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?`, p.Name).Scan(&there); err != nil {
			return err
		}
		if there > 0 {
			return fmt.Errorf("there is a database %s already, and nothing that is there is touched: try again, for another name", p.Name)
		}
		if _, err := db.ExecContext(ctx, "CREATE DATABASE `"+p.Name+"` CHARACTER SET utf8mb4"); err != nil {
			return fmt.Errorf("the suites need a database of their own, and this user may not make it: GRANT ALL ON `hookonce\\_conformance\\_%%`.* TO the user: %w", err)
		}
		return nil
	})
}

// remove ends the connections to the database, which may still hold locks, and drops it.
func (p mysqlPlace) remove(ctx context.Context) error {
	return p.connected(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SELECT id FROM information_schema.processlist WHERE db = ?`, p.Name)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
			_, _ = db.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // it may be gone, or somebody else's
		}
		if err := rows.Err(); err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, "DROP DATABASE IF EXISTS `"+p.Name+"`")
		return err
	})
}

func (p mysqlPlace) database(t *testing.T, suite string) storetest.TxConfig[*sql.Tx] {
	connect := func(string) (driver.Connector, error) {
		cfg, err := p.config(p.Name)
		if err != nil {
			return nil, err
		}
		return mysql.NewConnector(cfg)
	}
	c := testdb.SQL{Dialect: sqlstore.MySQL, Parameter: "?", Connector: connect}
	return c.Config(testdb.Reused("", suite))
}

func mysqlSuites(target Target) []suite { return sqlSuites(mysqlPlace{target}.database) }

// sqlSuites are all that is known about what the library keeps by database/sql.
func sqlSuites(database func(t *testing.T, suite string) storetest.TxConfig[*sql.Tx]) []suite {
	return []suite{
		{"library", func(t *testing.T) {
			cfg := database(t, "library")
			library(t, cfg)
			storetest.RunTallier(t, cfg)
		}},
		{"faults", func(t *testing.T) { storetest.RunFaults(t, database(t, "faults")) }},
		{"history", func(t *testing.T) { storetest.RunHistory(t, database(t, "history").History()) }},
	}
}
