package assemble

import (
	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/outbox"
)

// revived requests a sweep, and notes the row.
func (j *rowsJob) revived(before, after lean.Image) {
	j.txn.kick = true
	id, ok := idOf(&after[fieldID])
	if !ok {
		id, ok = idOf(&before[fieldID]) // only what changed is logged of the row as it is now
	}
	if ok {
		j.txn.revived.add(outbox.Ref{Table: j.st.table, ID: id})
	} else {
		j.txn.revived.more++
	}
}

// revives reports whether an update that is not the relay's own made a row due: pending when it was not, pending
// under another id (an upsert or a REPLACE that hits an existing row is logged so), failed by hand, or due at once
// because its next_retry_time was set to NULL. A sweep should look at once.
//
// The relay's own updates must not count, or each would be followed by a sweep for nothing. They are: a mark, which
// leaves pending and failed for good; a failure, which counts one more retry and sets a time; a claim, a release and
// a deferral, which set a time and leave the status. With binlog_row_image=MINIMAL only what changed is logged of the
// row as it is now, and of the row as it was only its key.
func (j *rowsJob) revives(before, after lean.Image) bool {
	status, was := &after[fieldStatus], &before[fieldStatus]
	switch j.st.maker.status(status) {
	case outbox.Pending:
		return was.State != lean.Present || j.st.maker.status(was) != outbox.Pending || otherID(before, after) || hastened(before, after)
	case outbox.Failed:
		return hastened(before, after) || j.failedByHand(before, after)
	default:
		return status.State == lean.Absent && hastened(before, after)
	}
}

// failedByHand reports whether somebody else than the relay made the row failed.
func (j *rowsJob) failedByHand(before, after lean.Image) bool {
	was, retries := &before[fieldStatus], &after[fieldRetryCount]
	if was.State != lean.Present {
		return intOf(retries) == 0 // the relay's own failures count one
	}
	more := intOf(retries) - intOf(&before[fieldRetryCount])
	switch j.st.maker.status(was) {
	case outbox.Failed:
		return more < 0
	case outbox.Pending:
		return more <= 0
	default:
		return true
	}
}

// hastened reports whether a row's next_retry_time was set to NULL, which the relay does with dead letters only.
func hastened(before, after lean.Image) bool {
	return after[fieldNextRetry].State == lean.Null && before[fieldNextRetry].State != lean.Null
}

func otherID(before, after lean.Image) bool {
	was, ok := idOf(&before[fieldID])
	is, known := idOf(&after[fieldID])
	return ok && known && was != is
}
