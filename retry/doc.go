// Package retry says when to try again: the policy of delays and of how many there are, the loop that tries until something
// works, a wait that gives up with its context, and the classes of failure. Package trouble below it logs what lasts.
//
// It depends on the standard library alone, since consumers and producers import it too.
package retry
