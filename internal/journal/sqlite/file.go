package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// pageSize is that of new files, in bytes. Measured with bodies of 2 KB and random keys, 8 KB costs
// the least processor time while the index on keys is small (three bodies fit on a page, where 4 KB
// takes one), and not more than 4 KB when there are millions of keys and each new one touches a page
// of its own; 16 KB does.
const pageSize = 8192

// connectionPragmas hold for every connection. FULL syncs the log at every commit. Nobody
// checkpoints during a commit; see checkpointer.
var connectionPragmas = []string{
	"busy_timeout(5000)",
	"synchronous(FULL)",
	"cache_size(-32768)", // KiB, an upper bound
	"temp_store(MEMORY)",
	"wal_autocheckpoint(0)",
}

// newConnector returns what opens connections to the file at path.
func newConnector(path string) (driver.Connector, error) {
	q := url.Values{"_pragma": connectionPragmas}
	return sqlite.NewConnector("file:" + url.PathEscape(path) + "?" + q.Encode())
}

// format gives a new file its page size, and every file the write-ahead log. It returns the size of
// the file's pages in bytes.
func format(ctx context.Context, connector driver.Connector) (size int64, err error) {
	c, err := connect(ctx, connector)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.run(fmt.Sprintf("PRAGMA page_size = %d", pageSize)); err != nil {
		return 0, err
	}
	mode, err := c.value("PRAGMA journal_mode = WAL")
	if err != nil {
		return 0, err
	}
	if mode != "wal" {
		return 0, fmt.Errorf("the file system does not allow a write-ahead log (journal mode %v): put the file on a local disk", mode)
	}
	got, err := c.value("PRAGMA page_size")
	if err != nil {
		return 0, err
	}
	size, _ = got.(int64)
	return size, nil
}

// ErrInUse says that another store has the file open.
var ErrInUse = errors.New("the journal is in use")

// resolve returns the one name that the file at path has, whatever links lead to it: the lock and the
// log lie beside the file under its name. The file need not be there yet, its folder must.
func resolve(path string) (string, error) {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("journal/sqlite: the folder of %s cannot be used: create it, or choose another path (%w)", path, err)
	} else if !info.IsDir() {
		return "", fmt.Errorf("journal/sqlite: %s cannot be used: %s is not a folder; choose another path", path, dir)
	}
	name, err := sqlitefile.Resolve(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("journal/sqlite: %s cannot be used: it is a link to a file that is not there; create that file, or choose another path", path)
	case err != nil:
		return "", fmt.Errorf("journal/sqlite: %s cannot be used: %w; choose another path", path, err)
	}
	return name, nil
}

// lock takes the lock that makes path ours, and creates the file that carries it. It comes before the lock of the database
// itself ([openLocked]), so that a second store in this process, or the next one to create the file, never opens the database.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal/sqlite: the folder of %s must be writable for this user (%w)", path, err)
	}
	if err := lockFile(f); err != nil {
		f.Close()
		if taken := sqlitefile.Taken(path); taken != nil {
			return nil, fmt.Errorf("journal/sqlite: %w: %w", ErrInUse, taken)
		}
		return nil, fmt.Errorf("journal/sqlite: %w: %s is open in process %s; stop it first, or give each process a file of its own (%w)",
			ErrInUse, path, sqlitefile.Holder(path), err)
	}
	sqlitefile.Sign(f, nil)
	return f, nil
}

// openLocked opens the database itself and locks it, so that no other gateway has it by another name. A new one, and with it the
// log beside it, is for this user only, because it is full of other people's webhooks.
//
// The file must be closed after the last connection to the database, also the last that others have in this process: closing
// any descriptor of a file drops the locks that SQLite has on it in this process (fcntl(2)).
func openLocked(path string) (*os.File, error) {
	f := retained.take(path)
	if f == nil {
		var err error
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			return nil, fmt.Errorf("journal/sqlite: %s cannot be opened: %s (%w)", path, notWritable, err)
		}
	}
	if err := lockDatabase(f); err != nil {
		_ = retained.put(path, f)
		return nil, fmt.Errorf("journal/sqlite: %w: another process has %s open, by another name or from another container; stop it first, or give each process a file of its own (%w)",
			ErrInUse, path, err)
	}
	return f, nil
}

// retained holds the descriptors of databases that could not be opened, for the next attempt: see openLocked. There is one of each name.
var retained retainedFiles

type retainedFiles struct {
	mu    sync.Mutex
	files map[string]*os.File
}

// put keeps f, unlocked.
func (p *retainedFiles) put(path string, f *os.File) error {
	if !closingUnlocks {
		return f.Close()
	}
	if err := unlockDatabase(f); err != nil {
		return errors.Join(err, f.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil {
		p.files = map[string]*os.File{}
	}
	p.files[path] = f // none is there: whoever has the lock beside the file took it
	return nil
}

// take returns what was put there for the file that is at path now; nil: nothing.
func (p *retainedFiles) take(path string) *os.File {
	p.mu.Lock()
	f := p.files[path]
	delete(p.files, path)
	p.mu.Unlock()
	if f == nil {
		return nil
	}
	info, err := f.Stat()
	if now, there := os.Stat(path); err != nil || there != nil || !os.SameFile(info, now) {
		f.Close() // a file of which SQLite has no more use
		return nil
	}
	return f
}

const notWritable = "this user must be able to write to the file and its folder"

// explain adds to an error of SQLite what to do about it.
func explain(path string, err error) error {
	advice := ""
	switch primary(err) {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		advice = "it is not a SQLite database, or damaged: choose another path, or restore a backup"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		advice = notWritable
	case sqlite3.SQLITE_FULL:
		advice = "the disk is full"
	case sqlite3.SQLITE_BUSY:
		advice = "another program is writing to it: stop that program"
	default:
		return fmt.Errorf("journal/sqlite: %s: %w", path, err)
	}
	return fmt.Errorf("journal/sqlite: %s cannot be opened: %s (%w)", path, advice, err)
}

// primary returns the primary result code of an error of SQLite, or 0.
func primary(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// rowRefused reports whether err is about the content of one row, so that the other rows of the
// batch may well be stored.
func rowRefused(err error) bool {
	switch primary(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}
