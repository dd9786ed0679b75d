package pgtest

// Open starts a cluster for a program that is no test, such as the benchmarks. Close must be called;
// the server also ends when the process does.
func Open(o Options) (*Cluster, error) { return start(o) }

// Close stops the server and removes its files.
func (c *Cluster) Close() error { return c.keeper.Close() }

// CreateDatabase makes a fresh, empty database and returns its connection string.
func (c *Cluster) CreateDatabase() (dsn string, err error) {
	name, err := c.createDatabase()
	if err != nil {
		return "", err
	}
	return c.url(name), nil
}
