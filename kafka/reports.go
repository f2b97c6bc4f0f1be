package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// ReportReader reads the topic of consumers' reports for one consumer group of one member. It takes no part in the
// group protocol: who may read is decided by the leader's lock, so that a new leader reads on at once, without waiting
// for the old one's session to expire. One goroutine uses it.
//
// Fetch returns records once; Commit keeps for the group how far everything that was returned reaches. What was not
// committed is returned again to the next reader.
type ReportReader struct {
	*leaders // with a sarama client of its own: a fetch that waits would hold up the questions of the other one
	topic    string
	group    string
	progress map[partition]progress // nil when nothing is known
	learned  time.Time
}

// progress is how far a partition is read.
type progress struct {
	next, committed int64
	end             int64
}

// fetchReports leaves out what a consumer's aborted transaction has reported.
var fetchReports = fetch{
	isolation: sarama.ReadCommitted, bytes: 4 << 20, partitionBytes: 512 << 10, wait: 500 * time.Millisecond,
}

const (
	// reportsLimit is how long Fetch or Commit may take.
	reportsLimit = 10 * time.Second
	// relearnEvery is how often it looks for partitions that were added.
	relearnEvery = time.Minute
)

// NewReportReader returns a reader that has not connected yet.
func (c *Client) NewReportReader(topic, group string) (*ReportReader, error) {
	ask, err := sarama.NewClient(c.cfg.Brokers, c.cfg.impatient(c.dial))
	if err != nil {
		return nil, fmt.Errorf("open kafka client: %w", err)
	}
	return &ReportReader{leaders: newLeaders(c, ask), topic: topic, group: group}, nil
}

// Close gives the connections back. What is committed stays.
func (r *ReportReader) Close() error {
	if err := r.ask.Close(); err != nil && !errors.Is(err, sarama.ErrClosedClient) {
		return fmt.Errorf("close the reader of reports: %w", err)
	}
	return nil
}

// Fetch waits, half a second at most, for records and returns their values, from all partitions; none is an answer.
// After an error the reader begins again at what is committed. behind is how many records were not returned yet.
func (r *ReportReader) Fetch(ctx context.Context) (values [][]byte, behind int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, reportsLimit)
	defer cancel()
	if values, err = r.fetch(ctx); err != nil {
		r.progress = nil
		return nil, 0, fmt.Errorf("read topic %s: %w", r.topic, explain(err))
	}
	for _, p := range r.progress {
		behind += max(0, p.end-p.next)
	}
	return values, behind, nil
}

func (r *ReportReader) fetch(ctx context.Context) (values [][]byte, err error) {
	if r.progress == nil || time.Since(r.learned) > relearnEvery {
		if err := r.learn(ctx); err != nil {
			return nil, err
		}
	}
	wanted := make(map[partition]int64, len(r.progress))
	for at, p := range r.progress {
		wanted[at] = p.next
	}
	for at, got := range askAll(ctx, r.leaders, wanted, fetchReports.ask) {
		p := r.progress[at]
		switch {
		case errors.Is(got.err, sarama.ErrOffsetOutOfRange):
			if p.next, err = r.oldest(ctx, at, p.next); err != nil {
				return nil, err
			}
		case got.err != nil:
			return nil, fmt.Errorf("partition %d: %w", at.id, got.err)
		default:
			for _, record := range got.value.records() {
				values = append(values, record.Value)
			}
			p.next, p.end = got.value.next(), got.value.end()
		}
		r.progress[at] = p
	}
	return values, ctx.Err()
}

// oldest returns the oldest offset that is there. Reports before it were deleted by the topic's retention, or the
// topic was made anew.
func (r *ReportReader) oldest(ctx context.Context, at partition, from int64) (int64, error) {
	oldest, err := r.offsets(ctx, map[partition]int64{at: sarama.OffsetOldest})
	if err != nil {
		return 0, err
	}
	r.client.log.Warn().
		Str("topic", r.topic).Int32("partition", at.id).Int64("offset", from).Int64("oldest", oldest[at]).
		Msg("reports were deleted before they were read: keep them longer (retention.ms); see outbox-relay messages list --unconsumed-for 1h")
	return oldest[at], nil
}

// learn finds the partitions and where the group has come to. A partition that it has never read is read from its
// start.
func (r *ReportReader) learn(ctx context.Context) error {
	committed, err := call(ctx, r.client, func() (map[int32]int64, error) {
		if err := r.ask.RefreshMetadata(r.topic); err != nil {
			return nil, err
		}
		partitions, err := r.ask.Partitions(r.topic)
		if err != nil {
			return nil, err
		}
		return r.client.committed(r.ask, r.group, r.topic, partitions)
	})
	if err != nil {
		return err
	}
	learned := make(map[partition]progress, len(committed))
	unread := map[partition]int64{}
	for id, offset := range committed {
		at := partition{r.topic, id}
		p, known := r.progress[at]
		if !known {
			p = progress{next: offset, committed: offset, end: offset}
		}
		if learned[at] = p; p.next < 0 {
			unread[at] = sarama.OffsetOldest
		}
	}
	oldest, err := r.offsets(ctx, unread)
	if err != nil {
		return err
	}
	for at, offset := range oldest {
		learned[at] = progress{next: offset, committed: learned[at].committed, end: offset}
	}
	r.progress, r.learned = learned, time.Now()
	return nil
}

// Commit keeps how far the group has come.
func (r *ReportReader) Commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reportsLimit)
	defer cancel()
	moved := map[int32]int64{}
	for at, p := range r.progress {
		if p.next != p.committed {
			moved[at.id] = p.next
		}
	}
	if len(moved) == 0 {
		return nil
	}
	_, err := call(ctx, r.client, func() (struct{}, error) {
		return struct{}{}, r.client.commit(r.ask, r.group, r.topic, moved)
	})
	if err != nil {
		return fmt.Errorf("commit the offsets of group %s: %w", r.group, explain(err))
	}
	for at, p := range r.progress {
		p.committed = p.next
		r.progress[at] = p
	}
	return nil
}
