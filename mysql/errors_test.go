package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each class by numbers that are listed, with the state that the servers send. A class below ErrServer is that as well: who
// branches on ErrServer sees it.
func TestErrorsAreClassedByNumber(t *testing.T) {
	t.Parallel()
	for want, numbers := range map[error][]uint16{
		ErrUnreachable: {
			1040, 1053, 1077, 1129, 1158, 1159, 1160, 1161, 1203, 1226, 1317, 1927, 2006, 2013, 3032, 4031,
			1021, 1026, 1037, 1041, 1114, 1135, 1180, 1598,
		}, // a report must not be skipped because of a full disk
		ErrBusy:      {1205, 1213, 1969, 3024, 3101, 3572},
		ErrReadOnly:  {1290, 1792, 1836},
		ErrPrivilege: {1044, 1045, 1095, 1130, 1142, 1143, 1227, 1370, 1410, 1419, 1698, 1820, 1862, 3118, 4151},
		ErrGone:      {1049, 1051, 1146},
		ErrSchema:    {1054, 1072, 1176, 1364},
		ErrRefused: {
			1022, 1048, 1062, 1264, 1265, 1292, 1366, 1369, 1406, 1411, 1442, 1451, 1452, 1526, 1644, 1690, 1748, 3140, 3819,
			4025,
		},
		errFormat: {1665},
		ErrServer: {1052, 1064, 60000},
	} {
		for _, number := range numbers {
			err := Describe("mark", fmt.Errorf("wrapped: %w", &driver.MySQLError{Number: number, SQLState: [5]byte([]byte("HY000")), Message: "canary"}))
			require.ErrorIs(t, err, want, number)
			for _, other := range []error{ErrUnreachable, ErrBusy, ErrReadOnly, ErrPrivilege, ErrGone, ErrSchema, ErrRefused, errFormat} {
				assert.Equal(t, errors.Is(other, want) && errors.Is(want, other), errors.Is(err, other), "%d: %v", number, other)
			}
			assert.Equal(t, slices.Contains([]error{ErrServer, ErrRefused, errFormat}, want), errors.Is(err, ErrServer), number)
			assert.Equal(t, number, Code(err))
			assert.Equal(t, !slices.Contains([]error{ErrPrivilege, ErrGone, ErrSchema}, want), Retryable(err), number)
			assert.Equal(t, saysNoData[number], strings.Contains(err.Error(), "canary"), number)
		}
	}
}

// A number that is not listed is known by its state: a SIGNAL may have any.
func TestErrorsAreClassedByState(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]error{
		"22032": ErrRefused, "23000": ErrRefused, "44000": ErrRefused, "45000": ErrRefused, "45999": ErrRefused,
		"HY000": ErrServer, "42000": ErrServer, "40001": ErrServer, "01000": ErrServer, "": ErrServer,
	} {
		assert.Equal(t, want, ClassOf(60000, state), state)
	}
	assert.Equal(t, ErrServer, ClassOf(1052, "23000"), "an ambiguous column is no row's fault")
	assert.Equal(t, ErrSchema, ClassOf(1364, "23000"), "a number says more than a state")
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

// X54: what a server says before it has greeted has no state.
func TestErrorsWithoutAState(t *testing.T) {
	t.Parallel()
	err := Describe("connect", &driver.MySQLError{Number: 1040, Message: "Too many connections"})
	require.ErrorIs(t, err, ErrUnreachable)
	assert.Equal(t, "connect: error 1040: Too many connections", err.Error())
	assert.Contains(t, ConnectionRepair(err), "max_connections")
}

// X54: a certificate that is not accepted is named as that, with what to do.
func TestCertificates(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // the standard library's type
	server.StartTLS()
	defer server.Close()
	_, cause := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{ServerName: "localhost"}) //nolint:noctx // it answers at once
	require.Error(t, cause)
	err := Describe("connect", fmt.Errorf("wrapped: %w", cause))
	require.ErrorIs(t, err, ErrCertificate)
	require.ErrorIs(t, err, ErrServer)
	require.ErrorContains(t, err, "connect: the server's certificate is not accepted: x509: ")
	assert.Contains(t, ConnectionRepair(err), "ca_file")
}

// A dial that takes too long is a server that can't be reached, not the end of the caller's time: the dialer's own limit
// looks like one.
func TestDialThatTimesOut(t *testing.T) {
	t.Parallel()
	_, late := (&net.Dialer{Timeout: time.Nanosecond}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	require.ErrorIs(t, late, context.DeadlineExceeded)
	p := PoolOf(refusing{late}, 1)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	fn := func(context.Context, *sql.Conn) error { return nil }
	err := p.Run(t.Context(), "look", fn)
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "look: dial tcp 127.0.0.1:1: i/o timeout")
	ended, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ended.Done()
	err = p.Run(ended, "look", fn)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, ErrUnreachable)
}

// refusing makes no connection.
type refusing struct{ err error }

func (r refusing) Connect(context.Context) (sqldriver.Conn, error) { return nil, r.err }
func (r refusing) Driver() sqldriver.Driver                        { return nil }
