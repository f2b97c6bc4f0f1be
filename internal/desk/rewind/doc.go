// Package rewind moves a checkpoint at an operator's word. It says first what would follow: which rows the stream would
// bring again, which it would pass over, and what becomes of them.
//
// For that it reads the stretch of the binlog in question and asks the table about what it finds, for as long as the
// caller's patience lasts; what it has not read by then is estimated. Only Move.Apply changes something.
package rewind
