// Package checkpoint keeps, in Redis, the position up to which a source's messages are settled.
//
// One hash per source holds the record, one counter the epoch, one capped stream the history; a lease for the leader
// may stand beside them. What it guarantees:
//
//   - A save is fenced: it is refused (ErrFenced) when a newer epoch has been handed out or saved, so a relay that was
//     paused or cut off can't move the checkpoint after another took over. Within an epoch a save that was delayed on its
//     way never overwrites a later one.
//   - "There is no checkpoint" (ErrNone) is said only when Redis surely answered so. Loading, refusing, timing out and
//     everything else is "could not read".
//   - Every call returns within Config.Timeout (2 s): Redis being away never blocks the relay.
//   - What operators change is written to the history with who, where, when and why, and can be undone.
//
// It compares no positions and doesn't know what is settled: that is left to the relay. It never retries a save; the relay
// saves again in a second.
//
// # Keys
//
// The keys of a source are {prefix}{source}:checkpoint, :epoch, :history and :leader, for instance
// outbox-relay:default:checkpoint. A Redis Cluster runs a script only when its keys share a hash slot, so there (and only
// there) the source is wrapped in braces: outbox-relay:{default}:checkpoint. A prefix that has braces of its own is
// left as it is.
package checkpoint
