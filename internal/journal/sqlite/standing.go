package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"

	"modernc.org/sqlite"
)

// ErrGone says that the file, or the log beside it, was deleted, moved or replaced while the store had it open. What is
// stored from then on would not be there after a restart.
var ErrGone = errors.New("the file is not where it was opened")

// standing knows whether the files that SQLite has open are those that a restart would find. SQLite goes on with files
// that have no name any more, and does not notice.
type standing struct {
	files []placed
	gone  atomic.Pointer[error] // what was found; it stays until the store is opened again
}

// placed is one of the files, as it was when SQLite opened it.
type placed struct {
	path string
	info fs.FileInfo
}

// note remembers the files as they are. file is the database as it is open; SQLite has opened the others by then.
func (p *standing) note(path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	p.files = []placed{{path, info}}
	for _, part := range []string{"-wal", "-shm"} {
		info, err := os.Lstat(path + part)
		if err != nil {
			return err
		}
		p.files = append(p.files, placed{path + part, info})
	}
	return p.look()
}

// look compares the files with what is at their paths now. Links are not followed: one leads to the file by another name,
// and a restart would look for the log beside that.
func (p *standing) look() error {
	for i, f := range p.files {
		info, err := os.Lstat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return fmt.Errorf("%w: %s was deleted or moved", ErrGone, f.path)
		case err != nil:
			return fmt.Errorf("whether the file is in its place cannot be found out: %w", err)
		case !os.SameFile(info, f.info):
			return fmt.Errorf("%w: there is another file at %s", ErrGone, f.path)
		case i == 0 && info.Size() == 0:
			return fmt.Errorf("%w: %s was emptied", ErrGone, f.path)
		}
	}
	return nil
}

// Standing returns an error unless what is committed is where a restart will find it. It wraps [ErrGone] from when the
// file was found to be gone until the store is opened again, even if the file comes back: whoever had it meanwhile may
// have written to it. It looks at the paths, which takes microseconds.
func (s *Store) Standing() error {
	if gone := s.standing.gone.Load(); gone != nil {
		return *gone
	}
	err := s.standing.look()
	if errors.Is(err, ErrGone) && s.standing.gone.CompareAndSwap(nil, &err) {
		s.log.Error("journal/sqlite: the file was taken away while it was open: nothing is acknowledged any more; "+
			"put the file back with its log, or decide for what is there, and restart", "file", s.path, "error", err)
	}
	return err
}

// present reports whether the file was in its place when that was last looked at.
func (s *Store) present() bool { return s.standing.gone.Load() == nil }

// rooted opens connections to the file only while it is in its place: what else is there is none of ours, and to open it
// would read our log into it.
type rooted struct {
	driver.Connector
	store *Store
}

func (r rooted) Connect(ctx context.Context) (driver.Conn, error) {
	if err := r.store.Standing(); err != nil {
		return nil, fmt.Errorf("journal/sqlite: %w", err)
	}
	return r.Connector.Connect(ctx)
}

// closeWriter closes the last connection. SQLite then copies the log into the file that it has open, wherever that is now,
// and deletes the log by its path; it is kept from that where the path belongs to somebody else by now.
func (s *Store) closeWriter() error {
	for _, f := range s.standing.files {
		info, err := os.Lstat(f.path)
		if f.path != s.path && (err != nil || !os.SameFile(info, f.info)) {
			if control, ok := s.w.Conn.(sqlite.FileControl); ok {
				_, err := control.FileControlPersistWAL("main", 1)
				return errors.Join(err, s.w.close())
			}
		}
	}
	return s.w.close()
}
