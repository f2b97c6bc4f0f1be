// Package canal reads the binlog of a MySQL or MariaDB server and hands out what committed transactions wrote into the
// local message tables.
//
// What it guarantees: a Transaction is handed out only after its commit event was read, whole and in commit order;
// its rows are the net effect of the transaction; its End is always a place between two transactions; other tables'
// rows are passed over before they are decoded; and what can't be read with certainty is never guessed, but counted
// in Missed and left to the sweeper. A broken connection is replaced for ever, from the end of the last whole
// transaction. Only a position that the server can't serve any more ends the stream (PositionLost).
//
// What it leaves to others: saving positions, sending, marking, and everything that never was in the binlog.
package canal
