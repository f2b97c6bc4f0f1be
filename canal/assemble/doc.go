// Package assemble makes committed transactions of the events of a binlog.
//
// A Dispatcher gives each event its meaning. Events of other tables are passed over before they are decoded; rows of
// ours are decoded by their columns' names and gathered in bounded memory until the commit. What can't be read with
// certainty is counted in Transaction.Missed and left to the sweeper.
//
// It leaves to canal: connections, and from where to start. The server is queried for a table's columns alone.
package assemble
