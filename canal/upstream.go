package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/outbox-relay/mysql"
)

// Upstream relates a replica, whose binlog is read, to its primary, where rows are marked. It keeps a connection to
// each and may be used by any goroutine.
type Upstream struct {
	primary, replica *Asker
}

// ErrNotReplicating is returned when the replica can't say how far it is, because it does not replicate from the
// primary.
var ErrNotReplicating = errors.New("the replica does not apply the primary's binlog: start replication, directly from the primary, or take source.replica away")

// NewUpstream connects to nothing yet.
func NewUpstream(primary, replica Config) (*Upstream, error) {
	p, err := NewAsker(primary)
	if err != nil {
		return nil, fmt.Errorf("primary: %w", err)
	}
	r, err := NewAsker(replica)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("replica: %w", err), p.Close())
	}
	return &Upstream{primary: p, replica: r}, nil
}

// appliedWait is how long the replica is asked to wait at a time, so that a context that ends is noticed by us and not
// by killing the connection.
const appliedWait = time.Second

// Applied returns nil once the replica has applied everything that could be seen on the primary at the call. The
// primary's place is taken as file:pos: gtid_executed lags what can be read.
func (u *Upstream) Applied(ctx context.Context) error {
	primary, err := readServer(ctx, u.primary)
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	end, err := primary.end(ctx, u.primary)
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	replica, err := readServer(ctx, u.replica)
	if err != nil {
		return fmt.Errorf("replica: %w", err)
	}
	statement := fmt.Sprintf("SELECT %s(%s, %d, %d)", replica.posWait(), mysql.Literal(end.File), end.Pos, int(appliedWait/time.Second))
	for {
		result, err := u.replica.Query(ctx, statement)
		if err != nil {
			return fmt.Errorf("replica: %w", err)
		}
		// NULL: it does not replicate; -1: not yet; else the number of events waited for.
		events, err := strconv.Atoi(result.Text(0, 0))
		switch {
		case err != nil:
			return ErrNotReplicating
		case events >= 0:
			return nil
		}
	}
}

// posWait names the function that waits for a place of the primary; MySQL renamed it in 8.0.26 and dropped the old
// name.
func (s *server) posWait() string {
	if s.MariaDB || !s.AtLeast(8, 0, 26) {
		return "MASTER_POS_WAIT"
	}
	return "SOURCE_POS_WAIT"
}

// Close ends the connections.
func (u *Upstream) Close() error {
	return errors.Join(u.primary.Close(), u.replica.Close())
}
