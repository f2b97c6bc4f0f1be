package words

// What the columns of the message table mean: the keys of `source.columns`, which names each. The last five are optional.
const (
	ColumnID            = "id"
	ColumnMsgID         = "msg_id"
	ColumnTopic         = "topic"
	ColumnContent       = "content"
	ColumnStatus        = "status"
	ColumnRetryCount    = "retry_count"
	ColumnNextRetryTime = "next_retry_time"
	ColumnCreateTime    = "create_time"
	ColumnUpdateTime    = "update_time"
	ColumnKey           = "key"
	ColumnHeaders       = "headers"
	ColumnLastError     = "last_error"
	ColumnTrace         = "trace"
	ColumnBodyRef       = "body_ref"
)
