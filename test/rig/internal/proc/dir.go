// Package proc runs servers as child processes that leave nothing behind: not when the owner returns, not when it
// panics, not when it is killed.
//
// A supervising shell per server watches a pipe that only the owner holds (see supervise.sh), so no goroutine, no
// signal handler and no TestMain is needed, and leak checkers see nothing. Folders are locked by their owner; a lock
// that can be taken is a folder whose owner is gone, and the next NewDir removes it.
package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const ownerLock = "owner.lock"

// Dir is a folder of one server, locked by this process until Remove.
type Dir struct {
	Path string
	lock *os.File
}

// Root is where the servers' folders are: short, because a Unix socket's path has 107 bytes at most.
func Root() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("outbox-relay-rig-%d", os.Geteuid()))
}

// NewDir makes a folder for one server and removes those of owners that are gone.
func NewDir(kind string) (*Dir, error) {
	if err := os.MkdirAll(Root(), 0o755); err != nil {
		return nil, fmt.Errorf("make the rig's folder: %w", err)
	}
	// One at a time: a folder that is made but not yet locked would look stale to another's sweep.
	all, err := Lock(filepath.Join(Root(), "all.lock"))
	if err != nil {
		return nil, err
	}
	defer all.Close() //nolint:errcheck // closing releases the lock, nothing was written
	if err := sweep(); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(Root(), kind+"-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for %s: %w", kind, err)
	}
	lock, err := tryLock(filepath.Join(path, ownerLock))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Dir{Path: path, lock: lock}, nil
}

// Join returns a path inside the folder.
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(append([]string{d.Path}, elem...)...)
}

// Remove deletes the folder. The processes in it must have ended.
func (d *Dir) Remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// sweep removes the folders whose owners ended without cleaning up. Their servers died with the supervisor.
func sweep() error {
	entries, err := os.ReadDir(Root())
	if err != nil {
		return fmt.Errorf("look for stale folders: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == portsDir {
			continue
		}
		path := filepath.Join(Root(), e.Name())
		lock, err := tryLock(filepath.Join(path, ownerLock))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EWOULDBLOCK) {
			continue // removed meanwhile by its supervisor, or alive
		}
		if err != nil {
			return fmt.Errorf("look for stale folders: %w", err)
		}
		if err := errors.Join(os.RemoveAll(path), lock.Close()); err != nil {
			return fmt.Errorf("remove the stale folder %s: %w", path, err)
		}
	}
	return nil
}

// Lock waits for the exclusive lock on the file, which it makes if need be. Close releases it.
func Lock(path string) (*os.File, error) {
	return lockFile(path, syscall.LOCK_EX)
}

// tryLock is Lock without waiting: syscall.EWOULDBLOCK when another process has it.
func tryLock(path string) (*os.File, error) {
	return lockFile(path, syscall.LOCK_EX|syscall.LOCK_NB)
}

func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) // close-on-exec: no child keeps the lock
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}
