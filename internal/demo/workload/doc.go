// Package workload is the service that the relay serves: writers that put business rows and messages into local
// message tables in one transaction, and keep an oracle's ledger of what became of each.
//
// Some transactions are rolled back, some take part of their work back by a savepoint, some messages are delayed. Each
// writer owns its keys, so the commit order of a key is known for certain; after a COMMIT without an answer the writer
// takes new keys, because the old ones' order is not. A lost connection is survived: the writer tries again until its
// patience ends.
//
// It needs a *sql.DB and knows no driver; open the pool with interpolateParams=true, or each INSERT costs two round
// trips. Tests and the demo command share it.
package workload
