package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorsAreClassedByNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]error{
		1040: ErrUnreachable, 1053: ErrUnreachable, 1927: ErrUnreachable, 4031: ErrUnreachable, 1205: ErrBusy, 1213: ErrBusy, 3572: ErrBusy,
		1021: ErrUnreachable, 1114: ErrUnreachable, 1598: ErrUnreachable, // a report must not be skipped because of a full disk
		1290: ErrReadOnly, 1836: ErrReadOnly, 1045: ErrPrivilege, 1142: ErrPrivilege, 1227: ErrPrivilege, 1146: ErrGone, 1049: ErrGone,
		1054: ErrSchema, 1176: ErrSchema, 1366: ErrServer, 1062: ErrServer, 60000: ErrServer,
	} {
		err := Describe("mark", fmt.Errorf("wrapped: %w", &driver.MySQLError{Number: number, SQLState: [5]byte{'H', 'Y', '0', '0', '0'}, Message: "canary"}))
		require.ErrorIs(t, err, want, number)
		var own *Error
		require.ErrorAs(t, err, &own)
		assert.Equal(t, number, own.Number)
		assert.Equal(t, !slices.Contains([]error{ErrPrivilege, ErrGone, ErrSchema}, want), Retryable(err), number)
		assert.Equal(t, saysNoData[number], strings.Contains(err.Error(), "canary"), number)
	}
}

func TestFaultsOfTheConnectionAreUnreachable(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		sqldriver.ErrBadConn, driver.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, driver.ErrMalformPkt,
		&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
	} {
		err := Describe("mark", fmt.Errorf("wrapped: %w", cause))
		require.ErrorIs(t, err, ErrUnreachable, cause)
		assert.True(t, Retryable(err))
	}
	for _, quiet := range []error{context.Canceled, context.DeadlineExceeded} {
		err := Describe("mark", quiet)
		require.ErrorIs(t, err, quiet)
		assert.False(t, Retryable(err))
	}
	odd := Describe("mark", errors.New(`converting "canary" to int`))
	require.ErrorIs(t, odd, ErrServer)
	assert.NotContains(t, odd.Error(), "canary")
	require.NoError(t, Describe("mark", nil))
	own := error(&Error{Op: "look", Class: ErrGone, Text: "x"})
	assert.Equal(t, own, Describe("other", own), "a described error is not described again")
	require.ErrorIs(t, Describe("connect", driver.ErrNoTLS), ErrPrivilege)
}
