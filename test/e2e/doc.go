// Package e2e runs the relay's real binary against real servers and lets the oracle judge: by what the writers'
// ledger, a consumer of another client library, the tables and the saved checkpoints say.
//
// Each test has tables, topics and Redis keys of its own, so that the servers can be shared; a test that stops a server
// has one of its own. The tests run one after the other, because each wants both cores, but for
// the stories of the topic gate, which mostly wait.
package e2e
