package rig

import "context"

// StartMariaDB is MariaDB for a process that is no test. The server ends with Close, or with the process.
func StartMariaDB(ctx context.Context, opts ...Option) (*Server, error) {
	return startMariaDB(ctx, collect(opts))
}

// Close ends a server that StartMariaDB started and removes its folder.
func (s *Server) Close() error { return s.inst.destroy() }
