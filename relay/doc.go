// Package relay is the pipeline of one source: binlog transactions in, Kafka records out, rows marked, checkpoint saved.
//
// The order of writes is Kafka ack, then the mark in MySQL, then the checkpoint in Redis; any other order loses or
// repeats. The package holds no client library: it moves values between canal, router, kafka, store and checkpoint.
//
//	Reader.Next --> pump --> lines --> producer --ack--> marker --settled--> Tracker --safe--> saver
//	                           ^                           ^
//	                           +------- sweeper -----------+
package relay
