package words

// Why a connection that reads the binlog had to be made again: the reasons of source_reconnects_total. The first ones are what
// became of the connection, the others what ended the session that used it.
const (
	ReconnectClosed    = "closed"    // the server or the network closed it
	ReconnectTimeout   = "timeout"   // nothing came for the read timeout
	ReconnectRefused   = "refused"   // the server can't be reached
	ReconnectDenied    = "denied"    // user, password or privilege
	ReconnectServerID  = "server_id" // another replica came with the same server id
	ReconnectFatal     = "fatal"     // the server can't read its binlog from here
	ReconnectMalformed = "malformed" // what came can't be read
	ReconnectShutdown  = "shutdown"  // the server is shutting down, or killed the connection
	ReconnectServer    = "server"    // another error of the server
	ReconnectStuck     = "stuck"     // the server has more and sends nothing

	ReconnectLockLost       = "lock_lost"       // the leader's lock is not surely held any more
	ReconnectFenced         = "fenced"          // a newer leader has taken over
	ReconnectUnknownOutcome = "unknown_outcome" // Kafka may or may not have some records
	ReconnectPositionLost   = "position_lost"   // the position can't be read from any more
	ReconnectColumns        = "columns"         // rows were left to the sweeper that have to go before newer ones
	ReconnectStalled        = "stalled"         // nothing went on although there was work
	ReconnectSession        = "session"         // anything else
)

// Reconnects returns the reasons.
func Reconnects() []string {
	return []string{
		ReconnectClosed, ReconnectTimeout, ReconnectRefused, ReconnectDenied, ReconnectServerID, ReconnectFatal, ReconnectMalformed,
		ReconnectShutdown, ReconnectServer, ReconnectStuck, ReconnectLockLost, ReconnectFenced, ReconnectUnknownOutcome,
		ReconnectPositionLost, ReconnectColumns, ReconnectStalled, ReconnectSession,
	}
}
