// Package rewind tells what would follow from moving a checkpoint: which rows the stream would bring again, which it would
// pass over, and what becomes of them.
//
// It reads the stretch of the binlog in question and asks the table about what it finds, for as long as the caller's
// patience lasts; what it has not read by then is left to the caller to estimate. It changes nothing.
package rewind
