// Package words declares once what several packages have to spell alike: the values of metric labels, which stand in logs
// and in the status too, and the names of record headers. All are plain values, and the package imports nothing.
//
// A set of label values has a function that returns all of it. The metrics document these sets and begin each series at 0;
// the tests hold that what is counted is in them.
package words
