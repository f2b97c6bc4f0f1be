// Package retry says when to try again: the backoff list for messages, the exponential backoff for connections, a wait
// that gives up with its context, and the classes of failure.
//
// It decides about time only. It never runs what is to be retried, so the loops stay where the reader sees them, and it
// depends on the standard library alone.
package retry
