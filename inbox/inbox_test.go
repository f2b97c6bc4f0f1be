package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/retry"
)

// closed is a pool that is asked for nothing.
func closed(t *testing.T) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(mysql.NewConfig())
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	require.NoError(t, db.Close())
	return db
}

// Who imports the inbox gets the standard library and this module's two pure packages.
func TestImportsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		"example.com/outbox-relay/inbox", "example.com/outbox-relay/internal/words", "example.com/outbox-relay/outbox", "example.com/outbox-relay/retry",
	}, strings.Fields(string(out)))
}

func TestUnusableIDsAreRefusedBeforeAnySQL(t *testing.T) {
	t.Parallel()
	in, err := inbox.New(closed(t), inbox.Config{Group: "points"})
	require.NoError(t, err)
	for _, id := range []string{"", "ends with a space ", strings.Repeat("é", inbox.MaxID+1), "\xff"} {
		_, err := in.Do(t.Context(), inbox.Delivery{ID: id}, nil)
		require.ErrorIs(t, err, inbox.ErrID, "%q", id)
		_, err = in.First(t.Context(), nil, id)
		require.ErrorIs(t, err, inbox.ErrID, "%q", id)
	}
	require.NoError(t, inbox.CheckID(strings.Repeat("é", inbox.MaxID)))
}

func TestConfigReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := inbox.New(nil, inbox.Config{Group: strings.Repeat("g", 129), Table: "a.b.c", Tries: -1, Tx: &sql.TxOptions{ReadOnly: true}})
	for _, part := range []string{"no database", "128 characters", "database.name", "tries is -1", "read-only"} {
		require.ErrorContains(t, err, part)
	}
	_, err = inbox.New(closed(t), inbox.Config{})
	require.ErrorContains(t, err, "group is empty")
}

func TestMarksOfErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, err := range []error{inbox.Permanent(cause), fmt.Errorf("more: %w", inbox.Permanent(cause)), inbox.Permanent(inbox.RetryAfter(1, cause))} {
		assert.True(t, inbox.IsPermanent(err))
		require.ErrorIs(t, err, cause)
	}
	d, ok := inbox.RetryDelay(fmt.Errorf("more: %w", inbox.RetryAfter(time.Minute, cause)))
	assert.True(t, ok)
	assert.Equal(t, time.Minute, d)
	_, ok = inbox.RetryDelay(cause)
	assert.False(t, ok)
	assert.False(t, inbox.IsPermanent(cause))
	require.NoError(t, inbox.Permanent(nil))
	require.NoError(t, inbox.RetryAfter(time.Second, nil))
	assert.Equal(t, "cause", inbox.Permanent(cause).Error())
}

func TestNumberOfFindsTheDriversError(t *testing.T) {
	t.Parallel()
	server := &mysql.MySQLError{Number: 1213}
	for _, err := range []error{
		server, fmt.Errorf("a: %w", server), errors.Join(errors.New("x"), fmt.Errorf("b: %w", server)), inbox.Permanent(server),
	} {
		assert.Equal(t, uint16(1213), inbox.NumberOf(err), err)
	}
	var none *mysql.MySQLError
	for _, err := range []error{nil, errors.New("1213"), context.Canceled, none, strange{}} {
		assert.Zero(t, inbox.NumberOf(err))
	}
}

// strange has a Number that is no error number of a server.
type strange struct{ Number string }

func (strange) Error() string { return "1213" }

func TestPurgeRefusesAShortHorizon(t *testing.T) {
	t.Parallel()
	in, err := inbox.New(closed(t), inbox.Config{Group: "points"})
	require.NoError(t, err)
	for _, opts := range []inbox.PurgeOptions{
		{Keep: inbox.MinReplays - time.Second},
		{Keep: 10 * 24 * time.Hour, Replays: 30 * 24 * time.Hour},
	} {
		_, err := in.Purge(t.Context(), opts)
		require.ErrorIs(t, err, inbox.ErrHorizon)
		require.ErrorContains(t, err, "set Replays")
	}
	_, err = in.Purge(t.Context(), inbox.PurgeOptions{Keep: -1, Batch: 10_001})
	require.ErrorContains(t, err, "negative")
	require.ErrorContains(t, err, "batch is 10001")
	_, err = in.Purge(t.Context(), inbox.PurgeOptions{})
	require.NotErrorIs(t, err, inbox.ErrHorizon, "the default is long enough")
	require.ErrorIs(t, err, inbox.ErrUnavailable)
}

func TestErrorKindTellsNoPayload(t *testing.T) {
	t.Parallel()
	secret := "card 4111"
	for _, tc := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("handle: %w", errors.New(secret)), "*errors.errorString"},
		{&mysql.MySQLError{Number: 1406, Message: secret}, "database error 1406"},
		{inbox.Permanent(fmt.Errorf("%s: %w", secret, sql.ErrNoRows)), sql.ErrNoRows.Error()},
		{&inbox.Panic{Value: secret}, "handler panicked with a string"},
		{fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), "context deadline exceeded"},
	} {
		assert.Equal(t, tc.want, inbox.ErrorKind(tc.err))
		assert.NotContains(t, inbox.ErrorKind(tc.err), secret)
	}
	assert.Equal(t, secret, inbox.ErrorText(errors.New(secret)))
}

func TestPolicyDefaultsAndProblems(t *testing.T) {
	t.Parallel()
	p, err := inbox.Policy{DeadLetterTopic: "dead"}.Complete()
	require.NoError(t, err)
	assert.Equal(t, inbox.DefaultRetry(), p.Retry)
	assert.Equal(t, inbox.DeadLetter, p.Poison)
	assert.Equal(t, 25*time.Second, p.Grace)
	assert.Equal(t, "m-1", p.ID(&inbox.Delivery{Headers: []inbox.Header{{Key: "msg_id", Value: []byte("m-1")}, {Key: "msg_id", Value: []byte("m-2")}}}))
	_, err = inbox.Policy{Poison: inbox.Stop, NoID: inbox.Stop}.Complete()
	require.NoError(t, err, "nothing is ever a dead letter")
	_, err = inbox.Policy{Poison: inbox.Stop, NoID: 7, Grace: -1, Retry: retry.Policy{MaxRetries: 3}}.Complete()
	for _, part := range []string{"action(7)", "grace is -1ns", "backoff is empty"} {
		require.ErrorContains(t, err, part)
	}
	_, err = inbox.Policy{Poison: inbox.Stop}.Complete()
	require.ErrorContains(t, err, "dead letter topic is empty", "records without an id are dead letters still")
}

func TestPositionIDTellsTheRecord(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "orders/2/41", inbox.PositionID(&inbox.Delivery{Topic: "orders", Partition: 2, Offset: 41}))
	assert.Empty(t, inbox.HeaderID(&inbox.Delivery{}))
}

func TestNamesOfValues(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "none handled duplicate result(9)", fmt.Sprint(inbox.None, " ", inbox.Handled, " ", inbox.Duplicate, " ", inbox.Result(9)))
	assert.Equal(t, "dead-letter stop", fmt.Sprint(inbox.DeadLetter, " ", inbox.Stop))
	assert.Equal(t, "handled held stopped outcome(6)", fmt.Sprint(inbox.OutcomeHandled, " ", inbox.OutcomeHeld, " ", inbox.OutcomeStopped, " ", inbox.Outcome(6)))
}
