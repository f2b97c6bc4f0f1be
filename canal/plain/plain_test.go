package plain_test

import (
	"errors"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/plain"
)

func TestErrorsHoldNoContent(t *testing.T) {
	t.Parallel()
	event := &replication.EventError{
		Header: &replication.EventHeader{EventType: replication.QUERY_EVENT}, Err: "bad", Data: []byte("secret"),
	}
	require.NotContains(t, plain.Error(event).Error(), "secret")
	require.NotContains(t, plain.Text(errors.New(`parse rows event panic x, data "secret", parsed rows`)), "secret")
	require.Less(t, len(plain.Text(errors.New(strings.Repeat("x", 9999)))), 500)
	require.NoError(t, plain.Error(nil))
	require.ErrorIs(t, plain.Error(gomysql.ErrBadConn), gomysql.ErrBadConn)
	require.Equal(t, gomysql.NewError(1064, "syntax").Error(), plain.Text(gomysql.NewError(1064, "syntax")))
}
