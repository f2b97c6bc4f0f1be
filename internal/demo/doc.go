// Package demo shows that a relay keeps its word, on the servers that it is configured for.
//
// Run plays the service and the consumer: it writes business transactions with messages, some rolled back, to a local
// message table, reads the topics, and compares the two by the same oracle that the tests use. The relay between them is
// another process and nothing is known about it here; it may be stopped, killed and started again meanwhile.
//
// What it writes begins with a msg_id of its own run, so that other rows and records are left alone; its rows stay in the
// table, its business table is dropped.
package demo
