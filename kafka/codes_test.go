package kafka_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
)

// codeClasses is every code that sarama knows with its class, by its name there.
var codeClasses = map[string]struct {
	code  sarama.KError
	class retry.Class
}{
	"ErrUnknown":                            {sarama.ErrUnknown, retry.Refused},
	"ErrOffsetOutOfRange":                   {sarama.ErrOffsetOutOfRange, retry.Refused},
	"ErrInvalidMessage":                     {sarama.ErrInvalidMessage, retry.Unreachable},
	"ErrUnknownTopicOrPartition":            {sarama.ErrUnknownTopicOrPartition, retry.Refused},
	"ErrInvalidMessageSize":                 {sarama.ErrInvalidMessageSize, retry.Refused},
	"ErrLeaderNotAvailable":                 {sarama.ErrLeaderNotAvailable, retry.Unreachable},
	"ErrNotLeaderForPartition":              {sarama.ErrNotLeaderForPartition, retry.Unreachable},
	"ErrRequestTimedOut":                    {sarama.ErrRequestTimedOut, retry.Unreachable},
	"ErrBrokerNotAvailable":                 {sarama.ErrBrokerNotAvailable, retry.Unreachable},
	"ErrReplicaNotAvailable":                {sarama.ErrReplicaNotAvailable, retry.Unreachable},
	"ErrMessageSizeTooLarge":                {sarama.ErrMessageSizeTooLarge, retry.Never},
	"ErrStaleControllerEpochCode":           {sarama.ErrStaleControllerEpochCode, retry.Unreachable},
	"ErrOffsetMetadataTooLarge":             {sarama.ErrOffsetMetadataTooLarge, retry.Refused},
	"ErrNetworkException":                   {sarama.ErrNetworkException, retry.Unreachable},
	"ErrOffsetsLoadInProgress":              {sarama.ErrOffsetsLoadInProgress, retry.Unreachable},
	"ErrConsumerCoordinatorNotAvailable":    {sarama.ErrConsumerCoordinatorNotAvailable, retry.Unreachable},
	"ErrNotCoordinatorForConsumer":          {sarama.ErrNotCoordinatorForConsumer, retry.Unreachable},
	"ErrInvalidTopic":                       {sarama.ErrInvalidTopic, retry.Never},
	"ErrMessageSetSizeTooLarge":             {sarama.ErrMessageSetSizeTooLarge, retry.Never},
	"ErrNotEnoughReplicas":                  {sarama.ErrNotEnoughReplicas, retry.Unreachable},
	"ErrNotEnoughReplicasAfterAppend":       {sarama.ErrNotEnoughReplicasAfterAppend, retry.Unreachable},
	"ErrInvalidRequiredAcks":                {sarama.ErrInvalidRequiredAcks, retry.Refused},
	"ErrIllegalGeneration":                  {sarama.ErrIllegalGeneration, retry.Refused},
	"ErrInconsistentGroupProtocol":          {sarama.ErrInconsistentGroupProtocol, retry.Refused},
	"ErrInvalidGroupId":                     {sarama.ErrInvalidGroupId, retry.Refused},
	"ErrUnknownMemberId":                    {sarama.ErrUnknownMemberId, retry.Refused},
	"ErrInvalidSessionTimeout":              {sarama.ErrInvalidSessionTimeout, retry.Refused},
	"ErrRebalanceInProgress":                {sarama.ErrRebalanceInProgress, retry.Refused},
	"ErrInvalidCommitOffsetSize":            {sarama.ErrInvalidCommitOffsetSize, retry.Refused},
	"ErrTopicAuthorizationFailed":           {sarama.ErrTopicAuthorizationFailed, retry.Refused},
	"ErrGroupAuthorizationFailed":           {sarama.ErrGroupAuthorizationFailed, retry.Refused},
	"ErrClusterAuthorizationFailed":         {sarama.ErrClusterAuthorizationFailed, retry.Refused},
	"ErrInvalidTimestamp":                   {sarama.ErrInvalidTimestamp, retry.Refused},
	"ErrUnsupportedSASLMechanism":           {sarama.ErrUnsupportedSASLMechanism, retry.Unreachable},
	"ErrIllegalSASLState":                   {sarama.ErrIllegalSASLState, retry.Unreachable},
	"ErrUnsupportedVersion":                 {sarama.ErrUnsupportedVersion, retry.Unreachable},
	"ErrTopicAlreadyExists":                 {sarama.ErrTopicAlreadyExists, retry.Refused},
	"ErrInvalidPartitions":                  {sarama.ErrInvalidPartitions, retry.Refused},
	"ErrInvalidReplicationFactor":           {sarama.ErrInvalidReplicationFactor, retry.Refused},
	"ErrInvalidReplicaAssignment":           {sarama.ErrInvalidReplicaAssignment, retry.Refused},
	"ErrInvalidConfig":                      {sarama.ErrInvalidConfig, retry.Refused},
	"ErrNotController":                      {sarama.ErrNotController, retry.Unreachable},
	"ErrInvalidRequest":                     {sarama.ErrInvalidRequest, retry.Refused},
	"ErrUnsupportedForMessageFormat":        {sarama.ErrUnsupportedForMessageFormat, retry.Refused},
	"ErrPolicyViolation":                    {sarama.ErrPolicyViolation, retry.Refused},
	"ErrOutOfOrderSequenceNumber":           {sarama.ErrOutOfOrderSequenceNumber, retry.Unreachable},
	"ErrDuplicateSequenceNumber":            {sarama.ErrDuplicateSequenceNumber, retry.Unreachable},
	"ErrInvalidProducerEpoch":               {sarama.ErrInvalidProducerEpoch, retry.Unreachable},
	"ErrInvalidTxnState":                    {sarama.ErrInvalidTxnState, retry.Refused},
	"ErrInvalidProducerIDMapping":           {sarama.ErrInvalidProducerIDMapping, retry.Unreachable},
	"ErrInvalidTransactionTimeout":          {sarama.ErrInvalidTransactionTimeout, retry.Refused},
	"ErrConcurrentTransactions":             {sarama.ErrConcurrentTransactions, retry.Refused},
	"ErrTransactionCoordinatorFenced":       {sarama.ErrTransactionCoordinatorFenced, retry.Refused},
	"ErrTransactionalIDAuthorizationFailed": {sarama.ErrTransactionalIDAuthorizationFailed, retry.Refused},
	"ErrSecurityDisabled":                   {sarama.ErrSecurityDisabled, retry.Unreachable},
	"ErrOperationNotAttempted":              {sarama.ErrOperationNotAttempted, retry.Refused},
	"ErrKafkaStorageError":                  {sarama.ErrKafkaStorageError, retry.Unreachable},
	"ErrLogDirNotFound":                     {sarama.ErrLogDirNotFound, retry.Unreachable},
	"ErrSASLAuthenticationFailed":           {sarama.ErrSASLAuthenticationFailed, retry.Unreachable},
	"ErrUnknownProducerID":                  {sarama.ErrUnknownProducerID, retry.Unreachable},
	"ErrReassignmentInProgress":             {sarama.ErrReassignmentInProgress, retry.Unreachable},
	"ErrDelegationTokenAuthDisabled":        {sarama.ErrDelegationTokenAuthDisabled, retry.Unreachable},
	"ErrDelegationTokenNotFound":            {sarama.ErrDelegationTokenNotFound, retry.Unreachable},
	"ErrDelegationTokenOwnerMismatch":       {sarama.ErrDelegationTokenOwnerMismatch, retry.Unreachable},
	"ErrDelegationTokenRequestNotAllowed":   {sarama.ErrDelegationTokenRequestNotAllowed, retry.Unreachable},
	"ErrDelegationTokenAuthorizationFailed": {sarama.ErrDelegationTokenAuthorizationFailed, retry.Unreachable},
	"ErrDelegationTokenExpired":             {sarama.ErrDelegationTokenExpired, retry.Unreachable},
	"ErrInvalidPrincipalType":               {sarama.ErrInvalidPrincipalType, retry.Refused},
	"ErrNonEmptyGroup":                      {sarama.ErrNonEmptyGroup, retry.Refused},
	"ErrGroupIDNotFound":                    {sarama.ErrGroupIDNotFound, retry.Refused},
	"ErrFetchSessionIDNotFound":             {sarama.ErrFetchSessionIDNotFound, retry.Refused},
	"ErrInvalidFetchSessionEpoch":           {sarama.ErrInvalidFetchSessionEpoch, retry.Refused},
	"ErrListenerNotFound":                   {sarama.ErrListenerNotFound, retry.Unreachable},
	"ErrTopicDeletionDisabled":              {sarama.ErrTopicDeletionDisabled, retry.Refused},
	"ErrFencedLeaderEpoch":                  {sarama.ErrFencedLeaderEpoch, retry.Unreachable},
	"ErrUnknownLeaderEpoch":                 {sarama.ErrUnknownLeaderEpoch, retry.Unreachable},
	"ErrUnsupportedCompressionType":         {sarama.ErrUnsupportedCompressionType, retry.Refused},
	"ErrStaleBrokerEpoch":                   {sarama.ErrStaleBrokerEpoch, retry.Unreachable},
	"ErrOffsetNotAvailable":                 {sarama.ErrOffsetNotAvailable, retry.Unreachable},
	"ErrMemberIdRequired":                   {sarama.ErrMemberIdRequired, retry.Refused},
	"ErrPreferredLeaderNotAvailable":        {sarama.ErrPreferredLeaderNotAvailable, retry.Unreachable},
	"ErrGroupMaxSizeReached":                {sarama.ErrGroupMaxSizeReached, retry.Refused},
	"ErrFencedInstancedId":                  {sarama.ErrFencedInstancedId, retry.Refused},
	"ErrEligibleLeadersNotAvailable":        {sarama.ErrEligibleLeadersNotAvailable, retry.Unreachable},
	"ErrElectionNotNeeded":                  {sarama.ErrElectionNotNeeded, retry.Refused},
	"ErrNoReassignmentInProgress":           {sarama.ErrNoReassignmentInProgress, retry.Refused},
	"ErrGroupSubscribedToTopic":             {sarama.ErrGroupSubscribedToTopic, retry.Refused},
	"ErrInvalidRecord":                      {sarama.ErrInvalidRecord, retry.Never},
	"ErrUnstableOffsetCommit":               {sarama.ErrUnstableOffsetCommit, retry.Refused},
	"ErrThrottlingQuotaExceeded":            {sarama.ErrThrottlingQuotaExceeded, retry.Unreachable},
	"ErrProducerFenced":                     {sarama.ErrProducerFenced, retry.Unreachable},
	"ErrInvalidUpdateVersion":               {sarama.ErrInvalidUpdateVersion, retry.Refused},
}

func TestEveryCodeOfSaramaHasItsClass(t *testing.T) {
	t.Parallel()
	for name, want := range codeClasses {
		assert.Equal(t, want.class, kafka.Classify(want.code), name)
		assert.NotEmpty(t, kafka.Reason(want.code), name)
	}
	// A sarama that knows more codes makes somebody think about each.
	var known []string
	for name := range codeClasses {
		known = append(known, name)
	}
	assert.ElementsMatch(t, saramaCodes(t), known)
}

// saramaCodes reads the names of the KError constants from sarama's source.
func saramaCodes(t *testing.T) []string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/IBM/sarama").Output()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "errors.go"), nil, 0)
	require.NoError(t, err)
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "KError" && spec.Names[0].Name != "ErrNoError" {
			names = append(names, spec.Names[0].Name)
		}
		return true
	})
	require.Greater(t, len(names), 80)
	return names
}
