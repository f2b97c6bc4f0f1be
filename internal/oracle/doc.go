// Package oracle judges a run of the relay from the outside.
//
// The writer keeps a Ledger of what it committed, rolled back, or could not learn the outcome of; the consumer keeps a
// Log of every record it read; the table's final rows and samples of the checkpoint are read beside them. Judge compares
// the four by the relay's promises and names each fault with the messages it befell:
//
//   - no loss, no phantom, commit order per (topic, key), bytes, topic, key and headers as the row had them;
//   - duplicates only where they are allowed, each a copy of the first;
//   - every row ends sent, or dead where that was meant, with no retry spent without reason;
//   - the checkpoint never covers an unsettled row, stands at a transaction's end, and moves forward only.
//
// It opens no connection and reads no clock: whoever feeds it owns the servers. Tests and the demo command share it.
package oracle
