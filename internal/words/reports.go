package words

// What became of a reported message: the results of acks_total.
const (
	AckConsumed  = "consumed"  // its status became consumed
	AckWaiting   = "waiting"   // the group has reported, others have not
	AckAlready   = "already"   // it was reported before
	AckUnknown   = "unknown"   // no such message: archived, another source's, or never there
	AckAmbiguous = "ambiguous" // several topics have the msg_id and the report names none
	AckIgnored   = "ignored"   // a dead letter, discarded, or of a foreign status
	AckStranger  = "stranger"  // the group is none of those that have to report
	AckJunk      = "junk"      // a report that can't be read: counted once, whatever it holds
)

// Acks returns the results.
func Acks() []string {
	return []string{AckConsumed, AckWaiting, AckAlready, AckUnknown, AckAmbiguous, AckIgnored, AckStranger, AckJunk}
}

// By which way reports come: acks_total.
const (
	ViaKafka = "kafka"
	ViaHTTP  = "http"
	ViaSQL   = "sql"
)

// Vias returns them.
func Vias() []string { return []string{ViaKafka, ViaHTTP, ViaSQL} }
