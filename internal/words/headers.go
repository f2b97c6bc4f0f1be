package words

// The headers of a record that the relay writes itself. What else begins with HeaderReserved is kept for it.
const (
	HeaderMsgID       = "msg_id"          // what consumers deduplicate by
	HeaderSource      = "outbox_source"   // the source's name
	HeaderPosition    = "outbox_position" // server/file:pos/row, or PositionSweep
	HeaderCreated     = "outbox_created"  // the row's create_time
	HeaderTraceParent = "traceparent"
	HeaderResend      = "outbox_resend" // how often a person has sent the message again from the history
	HeaderReserved    = "outbox_"
)

// PositionSweep is the HeaderPosition of records that the sweeper has sent.
const PositionSweep = "sweep"
