package rig

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KafkaACLs asks for a Kafka that checks rights. What no rule speaks of is allowed.
func KafkaACLs() Option {
	return KafkaConfig(map[string]string{
		"authorizer.class.name":          "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"allow.everyone.if.no.acl.found": "true",
	})
}

// DenyRead takes the right to read a topic from everybody, and leaves the others.
func (s *KafkaServer) DenyRead(t testing.TB, topic string) {
	t.Helper()
	s.owned(t)
	req := kmsg.NewPtrCreateACLsRequest()
	req.Creations = []kmsg.CreateACLsRequestCreation{
		rule(topic, kmsg.ACLOperationAll, kmsg.ACLPermissionTypeAllow),
		rule(topic, kmsg.ACLOperationRead, kmsg.ACLPermissionTypeDeny),
	}
	s.rights(t, func(ctx context.Context, client *kgo.Client) error {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		for _, result := range resp.Results {
			if err := kerr.ErrorForCode(result.ErrorCode); err != nil {
				return err
			}
		}
		return nil
	})
}

// AllowRead gives back what DenyRead took.
func (s *KafkaServer) AllowRead(t testing.TB, topic string) {
	t.Helper()
	s.owned(t)
	filter := kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourceName, filter.ResourcePatternType = kmsg.ACLResourceTypeTopic, &topic, kmsg.ACLResourcePatternTypeLiteral
	filter.Operation, filter.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	req := kmsg.NewPtrDeleteACLsRequest()
	req.Filters = []kmsg.DeleteACLsRequestFilter{filter}
	s.rights(t, func(ctx context.Context, client *kgo.Client) error {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Results[0].ErrorCode)
	})
}

func rule(topic string, operation kmsg.ACLOperation, permission kmsg.ACLPermissionType) kmsg.CreateACLsRequestCreation {
	acl := kmsg.NewCreateACLsRequestCreation()
	acl.ResourceType, acl.ResourceName, acl.ResourcePatternType = kmsg.ACLResourceTypeTopic, topic, kmsg.ACLResourcePatternTypeLiteral
	acl.Principal, acl.Host, acl.Operation, acl.PermissionType = "User:*", "*", operation, permission
	return acl
}

func (s *KafkaServer) rights(t testing.TB, change func(context.Context, *kgo.Client) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := s.ask(func(client *kgo.Client) error { return change(ctx, client) }); err != nil {
		t.Fatalf("change the rights of a topic: %v", err)
	}
}
